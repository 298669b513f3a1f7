"""Small samples with known numbers, to be drawn."""

from __future__ import annotations

import numpy as np
import torch

from experiments.sample_maps import Sample
from spectrakan.fields import FieldSpec, Grid


def sample_1d(models: int = 2) -> Sample:
    """A wave that runs to the right; model i errs by i + 1 hundredths everywhere."""
    grid = Grid.uniform((8,), ((-1.0, 1.0),))
    x = grid.coordinates[0].numpy()
    times = np.linspace(0.0, 1.0, 6)
    values = 2.0 + np.sin(np.pi * (x[None] - times[:, None]))
    truth = values[2:]
    said = {f"model{index}": truth + 0.01 * (index + 1) for index in range(models)}
    return Sample(FieldSpec("density"), grid, list(times[2:]), truth, said, values[:2], list(times[:2]))


def sample_2d(models: int = 2, steady: bool = True) -> Sample:
    """A ramp along x with another range along y; model i errs by ± (i + 1) tenths."""
    grid = Grid.uniform((4, 6), ((0.0, 1.0), (0.0, 1.5)))
    ramp = np.arange(4.0)[:, None] + 0.1 * np.arange(6.0)[None, :]
    frames = 1 if steady else 3
    truth = np.stack([ramp + frame for frame in range(frames)])
    sign = np.where(np.arange(6) % 2, 1.0, -1.0)
    said = {f"model{index}": truth + 0.1 * (index + 1) * sign for index in range(models)}
    given = np.full((1, 4, 6), 7.0)
    given[0, 0, 0] = 5.0
    times = [0.11 + 0.05 * frame for frame in range(frames)]
    if steady:
        return Sample(FieldSpec("pressure", "hPa"), grid, times, truth, said, given, (), FieldSpec("coefficient"))
    return Sample(FieldSpec("height", "m"), grid, times, truth, said, given, [0.1])


def sample_globe() -> Sample:
    """Two latitudes of unequal size and four longitudes."""
    grid = Grid.latitude_longitude(torch.tensor([-60.0, 0.0, 60.0]), torch.tensor([0.0, 90.0, 180.0, 270.0]))
    truth = 1000.0 + np.arange(12.0).reshape(1, 3, 4)
    error = np.zeros((1, 3, 4))
    error[:, 1] = 2.0
    given = 280.0 + np.arange(12.0).reshape(1, 3, 4)
    return Sample(
        FieldSpec("pressure", "hPa"), grid, [0.0], truth, {"fno": truth + error}, given, (),
        FieldSpec("temperature", "K"),
    )  # fmt: skip
