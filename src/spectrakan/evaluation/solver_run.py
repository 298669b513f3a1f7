"""The project's solver on a grid of choice, from the same functions as the samples of a generated set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from spectrakan.data.regenerate import recipe_of
from spectrakan.errors import SpectraKANError
from spectrakan.fields import Grid, Trajectories
from spectrakan.metrics import evaluate_fields
from spectrakan.numerics.resample import interpolation_matrix


class SolverRun:
    """Some samples of `trajectories` on `cells` cells along the longest axis."""

    def __init__(self, trajectories: Trajectories, samples: Sequence[int], cells: int) -> None:
        recipe = recipe_of(trajectories, cells)
        share = max(recipe.resolution) / max(trajectories.grid.shape)
        cut = getattr(recipe.parameters, "min_cells", None)
        if cut is not None:
            # A solver that cuts cells up to a number of its own must cut to a smaller one to be a coarser solver.
            recipe = replace(recipe, parameters=replace(recipe.parameters, min_cells=max(1, round(cut * share))))
        self.recipe = recipe
        self.samples = list(samples)
        self.initial = torch.cat([recipe.draw(range(sample, sample + 1)) for sample in samples])

    def frames(self, count: int) -> Callable[[], Tensor]:
        """The first `count` frames of all samples, ready to be solved for; a steady solution has one."""
        recipe, times = self.recipe, self.recipe.times[: max(1, count)]
        if recipe.varied is None:
            return lambda: recipe.equation.solve(self.initial, times, recipe.parameters)
        return lambda: torch.cat(
            [
                recipe.equation.solve(part, times, recipe.parameters_of(sample))
                for part, sample in zip(self.initial[:, None], self.samples, strict=True)
            ]
        )

    def error(self, truth: Tensor, kept: Sequence[int], last: int, grid: Grid) -> float:
        """Relative L2 error of the frames that count, on the cells of the truth."""
        if self.recipe.resolution == grid.shape:
            return 0.0  # by definition: this is the truth
        try:
            solved = self.frames(last)()[:, list(kept)]
        except SpectraKANError:
            return math.inf  # too coarse a grid for the scheme
        found = evaluate_fields(brought_to_cells(solved, grid), truth, grid=grid)["relative_l2"]
        return found if math.isfinite(found) else math.inf


def brought_to_cells(frames: Tensor, grid: Grid) -> Tensor:
    """Frames `(B, T, *coarse, C)` on the cells of a finer `grid`, by lines between cell centres.

    Beyond the outermost centres the lines go on, so that fields linear in space are met exactly.
    """
    boundary = grid.boundary or ("outflow",) * len(grid.shape)
    for axis, (centres, kind) in enumerate(zip(grid.unit_coordinates(), boundary, strict=True), start=2):
        cells = frames.shape[axis]
        if kind == "periodic":
            matrix = interpolation_matrix(centres, cells, periodic=True)
        else:
            frames = _with_ghost_cells(frames, axis)
            matrix = interpolation_matrix((centres * cells + 1) / (cells + 2), cells + 2, periodic=False)
        frames = torch.tensordot(frames, matrix.to(frames), dims=([axis], [1])).movedim(-1, axis)
    return frames


def _with_ghost_cells(frames: Tensor, axis: int) -> Tensor:
    """One cell more at both ends of an axis, on the line through the last two."""
    last = frames.shape[axis] - 1
    first, second, before, end = (frames.narrow(axis, place, 1) for place in (0, 1, last - 1, last))
    return torch.cat([2 * first - second, frames, 2 * end - before], dim=axis)
