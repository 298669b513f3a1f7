"""Lax-Friedrichs against the second-order shallow water solver, which shares none of its code."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spectrakan.numerics.resample import block_mean
from spectrakan.pde import droplet2d, shallow_water2d

WIDE = droplet2d.DropletParameters(amplitude=(0.5, 0.5), width=(0.05, 0.05), centre=(0.45, 0.45))


def start(size: int) -> Tensor:
    return droplet2d.draw_droplet(1, (size, size), WIDE, torch.Generator().manual_seed(0))


def second_order_frame(size: int, time: float) -> Tensor:
    """The unit box is a fifth as long as that solver's: lengths and speeds times 5, gravity times 25."""
    larger = shallow_water2d.ShallowWaterParameters(gravity=25 * WIDE.gravity, boundary="wall")
    frame = shallow_water2d.solve(start(size), (time,), larger)[0, 0]
    return frame * torch.tensor([1.0, 0.2, 0.2], dtype=torch.float64)


def blocks(frame: Tensor, size: int) -> Tensor:
    factor = frame.shape[0] // size
    return block_mean(block_mean(frame, 0, factor), 1, factor)


def test_refinement_reaches_the_same_flow_at_first_order():
    time, sizes = 0.1, (64, 128, 256)
    refined = second_order_frame(128, time)
    errors = []
    for size in sizes:
        frame = droplet2d.solve(start(size), (time,), WIDE)[0, 0]
        coarse = min(size, 128)
        errors.append(float((blocks(frame, coarse) - blocks(refined, coarse)).abs().mean()))
    assert errors[-1] < 0.1 * float((refined - refined.mean(dim=(0, 1))).abs().mean())
    assert 0.8 <= float(-np.polyfit(np.log(sizes), np.log(errors), 1)[0]) <= 1.1
