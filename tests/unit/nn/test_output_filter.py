"""The output filter: each wave passes by its factor, noise and wavelengths without power do not."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import spectrakan as sk
from spectrakan.fields import Window
from spectrakan.nn.axis import uniform_axis
from spectrakan.nn.output_filter import OutputFilter

WAVES = {
    "periodic": lambda k, x: torch.cos(2 * math.pi * k * x + 0.3),
    "wall": lambda k, x: torch.cos(math.pi * k * x),
    "dirichlet": lambda k, x: torch.sin(math.pi * (k + 1) * x),
}
HALF_CYCLES = {"periodic": lambda k: 2 * k, "wall": lambda k: k, "dirichlet": lambda k: k + 1}
EDGES = [("periodic",), ("wall",), ("dirichlet",), ("periodic",) * 2, ("dirichlet",) * 2, ("wall", "periodic")]


def axes_for(boundary: tuple[str, ...], cells: int) -> list:
    return [uniform_axis(cells, kind == "periodic") for kind in boundary]


def wave(boundary: tuple[str, ...], orders: tuple[int, ...], cells: int) -> torch.Tensor:
    """A product of waves, `(1, 1, *space)`."""
    field = torch.ones((), dtype=torch.float64)
    for kind, order in zip(boundary, orders, strict=True):
        centres = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
        field = field[..., None] * WAVES[kind](order, centres)
    return field[None, None]


def random_gates(boundary: tuple[str, ...], num_modes: int, generator: torch.Generator) -> OutputFilter:
    gates = OutputFilter(1, num_modes, boundary, 0.1).double()
    gates.gate.copy_(torch.rand(gates.gate.shape, generator=generator))
    return gates


@pytest.mark.parametrize("boundary", EDGES, ids="-".join)
def test_every_wave_passes_by_the_gate_of_its_length_on_every_grid(boundary, generator):
    gates = random_gates(boundary, 4, generator)
    step = 2 if set(boundary) == {"periodic"} else 1
    first = math.sqrt(sum((HALF_CYCLES[kind](0) / step) ** 2 for kind in boundary))
    beyond = [4 if kind == "periodic" else 8 for kind in boundary]  # orders without a gate of their own
    for orders in itertools.product(range(10), repeat=len(boundary)):
        length = math.sqrt(sum((HALF_CYCLES[kind](k) / step) ** 2 for kind, k in zip(boundary, orders, strict=True)))
        far = any(order >= limit for order, limit in zip(orders, beyond, strict=True))
        place = -1 if far else min(round(length - first), gates.gate.shape[1] - 1)
        for cells in (24, 40):
            field = wave(boundary, orders, cells)
            passed = gates(field, axes_for(boundary, cells))
            assert (passed - gates.gate[0, place] * field).abs().max() < 1e-12, orders


@pytest.mark.parametrize("boundary", EDGES, ids="-".join)
def test_open_gates_change_nothing_not_even_by_rounding(boundary, generator):
    field = torch.randn(2, 3, *[13] * len(boundary), generator=generator)
    assert torch.equal(OutputFilter(2, 4, boundary, 0.1)(field, axes_for(boundary, 13)), field)


@pytest.mark.parametrize("boundary", EDGES, ids="-".join)
def test_noise_as_large_as_the_answer_has_a_flat_spectrum(boundary, generator):
    gates = OutputFilter(2, 4, boundary, noise_level=1.0)
    axes = axes_for(boundary, 20)
    gates.fit((torch.randn(2, 500, *[20] * len(boundary), generator=generator), axes) for _ in range(4))
    assert (gates.gate - 0.5).abs().max() < 0.05
    gates.noise_level = 0.1
    gates.fit((torch.randn(2, 500, *[20] * len(boundary), generator=generator), axes) for _ in range(4))
    assert (gates.gate - 1 / 1.01).abs().max() < 0.005


def test_gates_are_wieners_answer_to_noise(generator):
    """Of all factors by length, the fitted ones bring a noisy answer nearest to the true one."""
    boundary, axes = ("periodic",), axes_for(("periodic",), 64)
    size = torch.tensor([3.0, 1.0, 0.3, 0.1, 0.03])
    true = sum(
        size[k] * torch.randn(1, 4000, 1, generator=generator) * wave(boundary, (k,), 64).float() for k in range(5)
    )
    true = true / true.square().mean().sqrt()
    noisy = true + 0.5 * torch.randn(true.shape, generator=generator)
    gates = OutputFilter(1, 6, boundary, noise_level=0.5)
    gates.fit([(true, axes)])
    best = (gates(noisy, axes) - true).square().mean()
    assert best < 0.1 * (noisy - true).square().mean()
    for place in range(5):
        for factor in (0.8, 1.2):
            other = OutputFilter(1, 6, boundary, noise_level=0.5)
            other.gate.copy_(gates.gate)
            other.gate[0, place] *= factor
            assert (other(noisy, axes) - true).square().mean() > best - 1e-6


def test_what_training_never_changes_stays(generator):
    """Where the mean of a field never moved, no network can move it, trained or not."""
    facts = sk.OperatorSignature(space_dims=2, history=2, in_channels=1, out_channels=1, boundary=("wall", "wall"))
    frames = torch.randn(16, 5, 12, 12, 1, generator=generator)
    frames = frames - frames.mean((2, 3), keepdim=True)
    window = Window(frames[:, :2], frames[:, 2:], None, None)
    moved = {}
    for error in (0.0, 0.1):
        model = sk.build_model("spectrakan", facts, width=8, num_modes=4, noise_level=error)
        model.fit_windows([window], units=False)
        with torch.no_grad():
            moved[error] = float((model(frames[:, :2]) - frames[:, 1]).mean((1, 2)).abs().max())
    assert moved[0.1] < 1e-6 < 1e-3 < moved[0.0]


def test_gates_are_kept_with_the_model(tmp_path, generator):
    facts = sk.OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1, boundary=("periodic",))
    model = sk.build_model("amfno", facts, width=4, num_modes=4, noise_level=0.1).eval()
    frames = torch.randn(8, 3, 16, 1, generator=generator).cumsum(2)
    model.fit_windows([Window(frames[:, :1], frames[:, 1:], None, None)], units=False)
    assert model.output_filter.gate.min() < 0.999
    model.save_pretrained(tmp_path / "model")
    assert torch.equal(sk.from_pretrained(tmp_path / "model")(frames[:, :1]), model(frames[:, :1]))


def noisy_answers(generator: torch.Generator, noise: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """True answers of five waves of unit size, and the same with noise of known size: `(1, 1, 20000, 64)` both."""
    waves = torch.cat([wave(("periodic",), (k,), 64) for k in range(5)], dim=1)
    true, error = (torch.randn(20_000, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    said = true + error * torch.tensor(noise, dtype=torch.float64)
    return tuple((part @ waves[0])[None, None] for part in (said, true))


def test_refitted_gates_are_those_of_the_errors_that_were_made(generator):
    noise = [0.0, 0.5, 1.0, 2.0, 4.0]
    said, true = noisy_answers(generator, noise)
    axes, gates = axes_for(("periodic",), 64), OutputFilter(1, 6, ("periodic",), 0.1)
    gates.refit([(said, true, axes)], adding=False)
    wanted = torch.tensor([1 / (1 + size**2) for size in noise])
    torch.testing.assert_close(gates.gate[0, :5], wanted, atol=0.01, rtol=0)
    best = (gates.double()(said[0], axes) - true[0]).square().mean()
    for place, factor in itertools.product(range(1, 5), (0.95, 1.05)):
        kept = gates.gate[0, place].item()
        gates.gate[0, place] = factor * kept
        assert (gates(said[0], axes) - true[0]).square().mean() > best
        gates.gate[0, place] = kept


def test_refitting_opens_no_closed_gate_and_nothing_beyond_one(generator):
    axes = axes_for(("wall", "wall"), 16)
    true = torch.randn(1, 2, 8, 16, 16, generator=generator)
    gates = OutputFilter(2, 4, ("wall", "wall"), 0.1)
    gates.gate[0, 0] = gates.gate[1, 3] = 0.0
    gates.refit([(0.5 * true, true, axes)], adding=True)
    assert gates.gate[0, 0] == gates.gate[1, 3] == 0.0
    assert (gates.gate == 1).sum() == gates.gate.numel() - 2
    gates.refit([(-true, true, axes)], adding=True)
    assert not gates.gate.any()  # what says the contrary is not heard
    kept = gates.gate.clone()
    gates.refit([], adding=True)
    assert torch.equal(gates.gate, kept)


def test_a_mean_that_is_added_up_is_judged_by_its_sums(generator):
    """An error that is always the same is small beside one step's change and large beside that of many."""
    true = torch.randn(20, 1, 500, 1, generator=generator, dtype=torch.float64)
    said = true + 0.5
    fields = [part.expand(-1, -1, -1, 32).clone() for part in (said, true)]
    axes, found = axes_for(("periodic",), 32), {}
    for adding in (False, True):
        gates = OutputFilter(1, 4, ("periodic",), 0.1)
        gates.refit([(*fields, axes)], adding=adding)
        found[adding] = float(gates.gate[0, 0])
    v, w = said.cumsum(0), true.cumsum(0)
    assert found[False] == pytest.approx(float((said * true).sum() / said.square().sum()), rel=1e-5)
    assert found[True] == pytest.approx(float((v * w).sum() / v.square().sum()), rel=1e-5)
    assert found[True] < 0.5 < 0.7 < found[False]


@pytest.mark.parametrize("predict", ["increment", "direct"])
def test_a_calibrated_model_errs_less_where_its_network_is_noise(predict, generator):
    facts = sk.OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1, boundary=("periodic",))
    model = sk.build_model("amfno", facts, width=4, num_modes=4, noise_level=0.01, predict=predict).eval()
    with torch.no_grad():
        model.readout.out.weight.normal_(std=3.0, generator=generator)  # an untrained network that speaks up
    frames = torch.randn(8, 5, 16, 1, generator=generator)
    window = Window(frames[:, :2], frames[:, 2:], None, None)
    model.fit_windows([window], units=False)

    def error() -> float:
        with torch.no_grad():
            said = [model(frames[:, step : step + 2]) for step in range(3)]
        return float((torch.stack(said, 1) - frames[:, 2:]).square().mean())

    before = error()
    model.calibrate_windows([window])
    after, gates = error(), model.output_filter.gate.clone()
    assert after < 0.9 * before
    model.calibrate_windows([window])
    torch.testing.assert_close(model.output_filter.gate, gates)  # a second time changes nothing


def test_a_model_without_a_filter_has_nothing_to_calibrate(generator):
    facts = sk.OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    model = sk.build_model("fno", facts, width=4, num_modes=4, noise_level=0.0)
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    frames = torch.randn(2, 2, 16, 1, generator=generator)
    model.calibrate_windows([Window(frames[:, :1], frames[:, 1:], None, None)])
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
