"""How much faster an operator is than the package's own solver: on the same grid, and at the same error.

The truth is the solution on the grid of the data, N cells. On a coarser grid n the solver is faster and less
accurate; its fields are interpolated to N cells linearly between cell centres and compared with the truth. Equal
error is where the solver's error equals the model's:

    equal resolution   t_solver(N) / t_model
    equal error        t_solver(n*) / t_model,  n* the coarsest grid with error no larger than the model's

A solver starts at time 0 and the model from given frames: the solver's time is that of the predicted frames alone,
its whole time minus that of the given frames.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from spectrakan.data.regenerate import recipe_of, require_same
from spectrakan.data.survey import Progress
from spectrakan.errors import ConfigError, SpectraKANError
from spectrakan.evaluation.batches import Samples, all_or, heading
from spectrakan.evaluation.cost import ROUNDS, SAMPLES, cost_of, first_batch, interleaved, machine, rollout_of
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.operators import as_operator, evaluation_mode
from spectrakan.fields import Grid, Trajectories
from spectrakan.metrics import evaluate_fields
from spectrakan.numerics.resample import interpolation_matrix
from spectrakan.runs.record import as_json

SHARES = (0.125, 0.25, 0.375, 0.5, 0.75)
"""Coarser grids that are tried by default, as fractions of the cells along an axis."""
LEAST_CELLS = 8


@dataclass(frozen=True)
class SolverPoint:
    """The solver on one grid."""

    resolution: tuple[int, ...]
    error: float
    """Relative L2 against the solution on the finest grid; infinite where the solver fails."""
    seconds: float


def speed_up(
    model: nn.Module,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    samples: Samples = None,
    grids: Sequence[int] | None = None,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Time of a rollout over that of the solver, for generated `samples` (the first 8 unless named) as one batch.

    `grids` are cells along the longest axis on which the solver is tried, below the data's own. Model and solvers
    are timed in turns, `rounds` times, on the threads that the result states; seconds are wall-clock medians.
    """
    operator, chosen = as_operator(model, trajectories), all_or(samples, trajectories, SAMPLES)
    require_same(trajectories)
    batch = first_batch(operator, trajectories, chosen, horizon)
    scored = scored_frames(trajectories, operator.signature.history, horizon)
    given = 0 if trajectories.steady else operator.signature.history
    truth, counted = batch.targets[:, list(scored.frames)], [given + frame for frame in scored.frames]
    last = given + scored.horizon
    runs = {size: SolverRun(trajectories, chosen, size) for size in _grids(trajectories, grids)}
    errors = {size: run.error(truth, counted, last, trajectories.grid) for size, run in runs.items()}
    sound = {size: run for size, run in runs.items() if errors[size] < math.inf}
    # On each grid all frames are timed, and the given ones alone.
    cases = {f"solver {size}": run.frames(last) for size, run in sound.items()}
    cases |= {f"given {size}": run.frames(given) for size, run in sound.items() if given}
    with evaluation_mode(operator):
        cases["model"] = rollout_of(operator, batch)
        times = interleaved(cases, rounds, progress)
        own = cost_of(operator, cases["model"], float(times["model"].median()), batch)
        pred = cases["model"]()[:, list(scored.frames)]
    error = evaluate_fields(pred, truth, grid=trajectories.grid)["relative_l2"]
    points = [
        SolverPoint(run.recipe.resolution, errors[size], _predicted_seconds(times, size))
        for size, run in runs.items()
    ]
    return as_json(
        heading(operator, trajectories, len(chosen), scored.horizon)
        | {"rounds": rounds, **machine(operator), "error_metric": "relative_l2", "rollout": own | {"error": error}}
        | {"solver": [asdict(point) | {"speed_up": point.seconds / own["seconds"]} for point in points]}
        | {"equal_resolution": {"speed_up": points[-1].seconds / own["seconds"]}}
        | {"equal_error": equal_error(points, error, own["seconds"])}
    )


def _grids(trajectories: Trajectories, grids: Sequence[int] | None) -> list[int]:
    """Cells along the longest axis, from coarse to the data's own."""
    own = max(trajectories.grid.shape)
    tried = [max(LEAST_CELLS, round(share * own)) for share in SHARES] if grids is None else grids
    if bad := [size for size in tried if grids is not None and not 4 <= size < own]:
        raise ConfigError(f"the solver is tried on grids from 4 to {own - 1} cells, below the data's own, got {bad}")
    return [*sorted({size for size in tried if size < own}), own]


def _predicted_seconds(times: dict[str, Tensor], size: int) -> float:
    """Median over rounds of the time for the predicted frames; NaN where the solver failed."""
    whole, given = times.get(f"solver {size}"), times.get(f"given {size}", 0.0)
    return math.nan if whole is None else max(0.0, float((whole - given).median()))


def equal_error(points: Sequence[SolverPoint], error: float, seconds: float) -> dict[str, Any] | None:
    """The solver at a model's `error`, and its time over the model's `seconds`; `points` go from coarse to fine.

    `resolution` is the coarsest grid whose error is no larger than the model's. `bound` is `at most` where this holds
    for the coarsest grid already: a still coarser one may suffice. None where the model's error is not finite.

    >>> points = [SolverPoint((16,), 0.4, 1.0), SolverPoint((32,), 0.1, 4.0), SolverPoint((64,), 0.0, 16.0)]
    >>> found = equal_error(points, 0.2, 2.0)
    >>> found["resolution"], found["speed_up"]
    ((32,), 2.0)
    """
    if not math.isfinite(error):
        return None
    index = next((at for at, point in enumerate(points) if point.error <= error), len(points) - 1)
    bound = "at most" if index == 0 else None
    return asdict(points[index]) | {"speed_up": points[index].seconds / seconds, "bound": bound}


class SolverRun:
    """Some samples of `trajectories` on `cells` cells along the longest axis."""

    def __init__(self, trajectories: Trajectories, samples: Sequence[int], cells: int) -> None:
        recipe = recipe_of(trajectories, cells)
        share = max(recipe.resolution) / max(trajectories.grid.shape)
        cut = getattr(recipe.parameters, "min_cells", None)
        if cut is not None:
            # A solver that refines its cells up to a minimum number needs a smaller minimum to be a coarser solver.
            recipe = replace(recipe, parameters=replace(recipe.parameters, min_cells=max(1, round(cut * share))))
        self.recipe, self.samples = recipe, list(samples)
        self.initial = torch.cat([recipe.draw(range(sample, sample + 1)) for sample in samples])

    def frames(self, count: int) -> Callable[[], Tensor]:
        """A function that solves for the first `count` frames of all samples; a steady solution has one."""
        recipe, times = self.recipe, self.recipe.times[: max(1, count)]
        if recipe.varied is None:
            return lambda: recipe.equation.solve(self.initial, times, recipe.parameters)
        parts = list(zip(self.initial[:, None], self.samples, strict=True))
        return lambda: torch.cat([recipe.equation.solve(part, times, recipe.parameters_of(n)) for part, n in parts])

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
    """Frames `(B, T, *coarse, C)` on the cells of a finer `grid`, linear between cell centres.

    Beyond the outermost centres they are extrapolated, so that fields linear in space are reproduced exactly.
    """
    boundary = grid.boundary or ("outflow",) * len(grid.shape)
    for axis, (centres, kind) in enumerate(zip(grid.unit_coordinates(), boundary, strict=True), start=2):
        cells = frames.shape[axis]
        if kind == "periodic":
            matrix = interpolation_matrix(centres, cells, periodic=True)
        else:
            # One more cell at both ends, extrapolated linearly from the last two.
            first, second, before, end = (frames.narrow(axis, at, 1) for at in (0, 1, cells - 2, cells - 1))
            frames = torch.cat([2 * first - second, frames, 2 * end - before], dim=axis)
            matrix = interpolation_matrix((centres * cells + 1) / (cells + 2), cells + 2, periodic=False)
        frames = torch.tensordot(frames, matrix.to(frames), dims=([axis], [1])).movedim(-1, axis)
    return frames
