"""The static page: the model inside the browser agrees with PyTorch, and the JavaScript solvers with ours."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spectrakan as sk
from spectrakan.pde.cns1d import CNS1DParameters
from spectrakan.pde.cns1d import solve as solve_gas
from spectrakan.pde.darcy2d import DarcyParameters
from spectrakan.pde.darcy2d import solve as solve_darcy
from spectrakan.serve.scenes import advance, watched
from tools.pool import add_drops, averaged, still

pytestmark = pytest.mark.slow
TWENTY = """async () => {
  const backend = await import("./backend.js"), water = await import("./water.js");
  const shape = water.dropShape(water.still(128), {x: 0.3, y: 0.6, h: 1.0, w: 0.006});
  let fine = water.addDepth(water.still(128), 128, shape), model = water.addDepth(water.still(CELLS), CELLS, shape);
  let glow;
  for (let k = 0; k < 20; k++) {
    const { numbers } = await backend.compare("droplet2d-small", CELLS, fine, model);
    fine = numbers.slice(0, fine.length);
    model = numbers.slice(fine.length, fine.length + model.length);
    glow = numbers.slice(fine.length + model.length);
  }
  return [Array.from(fine), Array.from(model), Array.from(glow)];
}"""


@pytest.mark.parametrize("cells", [32, 64])
def test_twenty_steps_agree_with_pytorch(static_page, open_page, cells: int):
    page = open_page(static_page)
    page.click("#pool-play")
    fine, model, glow = page.evaluate(TWENTY.replace("CELLS", str(cells)))
    start = add_drops(still(1), torch.tensor([[[0.3, 0.6, 1.0, 0.006]]]))
    truth = advance(start, 20)[0, -1].flatten().numpy()
    own = sk.from_pretrained("droplet2d-small").eval()
    given = sk.rollout(own, averaged(start, cells).float()[:, None], 20)
    attention = watched(own, given[:, -2:-1])[1].flatten().detach().numpy()
    assert np.abs(np.array(fine) - truth).max() < 1e-4
    assert np.abs(np.array(model) - given[0, -1].flatten().numpy()).max() < 1e-4
    assert attention.max() > 1.01 * attention.min(), "a uniform glow would agree with anything"
    assert np.abs(np.array(glow) - attention).max() < 1e-4 * attention.max()


def test_rock_and_gas_agree_with_ours(static_page, open_page):
    page = open_page(static_page)
    page.click("#pool-play")
    ask = """async ([name, cells, values]) => {
      const backend = await import("./backend.js");
      return Array.from((await backend.compare(name, cells, Float32Array.from(values))).numbers);
    }"""
    rock = torch.where(torch.rand(32, 32, generator=torch.Generator().manual_seed(3)) > 0.5, 1.0, 0.1)
    numbers = np.array(page.evaluate(ask, ["darcy2d-small", 32, rock.flatten().tolist()])).reshape(2, 32, 32)
    expected = solve_darcy(rock[None, ..., None].double(), (0.0,), DarcyParameters())[0, 0, ..., 0].numpy()
    assert np.abs(numbers[0] - expected).max() < 1e-5
    with torch.no_grad():
        own = sk.from_pretrained("darcy2d-small")(rock[None, None, ..., None])[0, ..., 0].numpy()
    assert np.abs(numbers[1] - own).max() < 1e-4
    x = torch.linspace(-1, 1, 129, dtype=torch.float64)[:-1] + 1 / 128
    state = torch.stack(
        [4 + torch.sin(torch.pi * x), 0.5 * torch.cos(torch.pi * x), 40 + 5 * torch.cos(torch.pi * x)], -1
    )
    numbers = np.array(page.evaluate(ask, ["cns1d-small", 128, state.flatten().tolist()])).reshape(2, 20, 128, 3)
    truth = solve_gas(state[None], [0.05 * (k + 1) for k in range(20)], CNS1DParameters(min_cells=512))[0].numpy()
    error = np.linalg.norm(numbers[0] - truth, axis=(0, 1)) / np.linalg.norm(truth, axis=(0, 1))
    assert error.max() < 0.01, error
    given = sk.rollout(sk.from_pretrained("cns1d-small"), state[None, None].float(), 20)[0].numpy()
    assert np.abs(numbers[1] / given.max((0, 1)) - given / given.max((0, 1))).max() < 1e-3


def test_the_page_goes_on_while_a_gas_is_solved(static_page, open_page):
    page = open_page(static_page + "#rock", wait="rock")
    ask = """async () => {
      const backend = await import("./backend.js");
      const gas = Float32Array.from({length: 384}, (_, k) => [4 + Math.sin(k / 61), 0, 40][k % 3]);
      let done = false, longest = 0, last = performance.now();
      const given = backend.compare("cns1d-small", 128, gas).then(({times}) => { done = true; return times; });
      while (!done) {
        await new Promise((go) => setTimeout(go, 5));
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }
      return [longest, (await given).solver];
    }"""
    longest, solving = page.evaluate(ask)
    assert longest < 0.5 * solving, "the longest pause of the page, in milliseconds"


def test_it_is_touched_without_a_server(static_page, open_page):
    page = open_page(static_page, viewport={"width": 360, "height": 740})
    page.evaluate("globalThis.spectrakan.scenes.pool.drop([0.5, 0.5], 1.1, 0.006)")
    for _ in range(200):
        if page.evaluate("globalThis.spectrakan.scenes.pool.since > 8"):
            break
        page.wait_for_timeout(50)
    assert page.evaluate("globalThis.spectrakan.scenes.pool.found.error") < 0.1
    assert "no server" in page.inner_text("#place")
    page.check("#pool-glow")
    page.wait_for_timeout(1000)
    assert "The glow is the attention of the token" in page.inner_text("#pool-words")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
