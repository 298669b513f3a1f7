"""The pool's arithmetic: what a drop conserves, and what means over larger cells keep."""

from __future__ import annotations

import torch

from spectrakan.pde.droplet2d import DropletParameters, draw_droplet
from spectrakan.serve.scenes import advance
from tools.pool import add_drops, averaged, still


def moving() -> torch.Tensor:
    start = draw_droplet(2, (128, 128), DropletParameters(), torch.Generator().manual_seed(0))
    return advance(start, 2)[:, -1]


def test_a_drop_keeps_the_mass_and_every_cell_s_momentum():
    state = moving()
    wet = add_drops(state, torch.tensor([[[0.2, 0.7, 1.0, 0.01]], [[0.9, 0.1, 0.5, 0.004]]]))
    assert torch.allclose(wet[..., 0].mean((1, 2)), state[..., 0].mean((1, 2)), rtol=1e-12)
    assert torch.allclose(wet[..., :1] * wet[..., 1:], state[..., :1] * state[..., 1:], atol=1e-12)
    peak = (wet - state)[0, ..., 0].flatten().argmax()
    assert divmod(int(peak), 128) == (25, 89)


def test_drops_on_one_place_stay_below_the_height_that_the_solver_allows():
    wet = add_drops(still(1), torch.tensor([[[0.5, 0.5, 2.2, 0.01]] * 6]))
    assert float(wet[..., 0].max()) <= 4.0
    assert torch.isfinite(advance(wet, 3)).all()


def test_means_over_cells_keep_mass_and_momentum():
    state = moving()
    for cells in (32, 64, 128):
        coarse = averaged(state, cells)
        assert coarse.shape == (2, cells, cells, 3)
        for total in (lambda s: s[..., 0], lambda s: s[..., 0] * s[..., 1], lambda s: s[..., 0] * s[..., 2]):
            assert torch.allclose(total(coarse).mean((1, 2)), total(state).mean((1, 2)), atol=1e-12)
