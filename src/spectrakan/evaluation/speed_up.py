"""How much quicker an operator is than the project's own solver: on the same grid, and at the same error.

The truth is what the solver gives on the grid of the data, N cells. On a coarser grid n the solver is quicker and
errs; its fields are brought to N cells by lines between cell centres and compared with the truth. Equal error is
where the solver's error has come down to the model's:

    equal resolution   t_solver(N) / t_model
    equal error        t_solver(n*) / t_model,  n* the coarsest grid with error no larger than the model's, and
                       between n* and the next coarser one with t interpolated along the error

A solver starts at time 0 and the model from given frames: the solver's time is that of the predicted frames alone,
its whole time less that of the given frames. `with_history` charges the model for the frames it must be given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from spectrakan.data.progress import Progress
from spectrakan.data.regenerate import require_same
from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import evaluation_mode
from spectrakan.evaluation.cost import ROUNDS, SAMPLES, cost_of, first_windows, machine, rollout_of
from spectrakan.evaluation.equal_error import SolverPoint, equal_error
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.plain import as_json
from spectrakan.evaluation.solver_run import SolverRun
from spectrakan.evaluation.timing import interleaved
from spectrakan.fields import Trajectories
from spectrakan.metrics import evaluate_fields
from spectrakan.models.operator import Operator

SHARES = (0.125, 0.25, 0.375, 0.5, 0.75)
"""Coarser grids that are tried by default, as shares of the cells along an axis."""
LEAST_CELLS = 8


def speed_up(
    model: Operator,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    samples: Sequence[int] | None = None,
    grids: Sequence[int] | None = None,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Time of a rollout over that of the solver, for generated `samples` (the first 8 unless named) as one batch.

    `grids` are cells along the longest axis on which the solver is tried, below the data's own. Model and solvers
    are timed in turns, `rounds` times, on the threads that the answer states; seconds are medians on the clock.
    """
    chosen = list(range(min(SAMPLES, trajectories.num_samples)) if samples is None else samples)
    require_same(trajectories)
    batch = first_windows(model, trajectories, chosen, horizon)
    scored = scored_frames(trajectories, model.signature.history, horizon)
    given = 0 if trajectories.steady else model.signature.history
    truth, counted = batch.targets[:, list(scored.frames)], [given + place for place in scored.frames]
    last = given + scored.horizon
    runs = {size: SolverRun(trajectories, chosen, size) for size in _grids(trajectories, grids)}
    errors = {size: run.error(truth, counted, last, trajectories.grid) for size, run in runs.items()}
    cases = _solver_cases({size: run for size, run in runs.items() if errors[size] < math.inf}, given, last)
    with evaluation_mode(model):
        cases["model"] = rollout_of(model, batch)
        times = interleaved(_told(cases, rounds, progress), rounds)
        own = cost_of(model, cases["model"], float(times["model"].median()), batch)
        said = cases["model"]()[:, list(scored.frames)]
    error = evaluate_fields(said, truth, grid=trajectories.grid)["relative_l2"]
    points = [
        SolverPoint(run.recipe.resolution, errors[size], _predicted_seconds(times, size))
        for size, run in runs.items()
    ]
    finest = points[-1].seconds
    before = float(times[f"given {max(runs)}"].median()) if given else 0.0
    return as_json(
        task=trajectories.task,
        model=model.name,
        resolution=trajectories.grid.shape,
        num_samples=len(chosen),
        horizon=scored.horizon,
        rounds=rounds,
        **machine(model),
        error_metric="relative_l2",
        rollout=own | {"error": error},
        solver=[asdict(point) | {"speed_up": point.seconds / own["seconds"]} for point in points],
        equal_resolution={
            "speed_up": finest / own["seconds"],
            "with_history": (before + finest) / (before + own["seconds"]),
        },
        equal_error=equal_error(points, error, own["seconds"]),
    )


def _solver_cases(runs: Mapping[int, SolverRun], given: int, last: int) -> dict[str, Callable[[], Tensor]]:
    """What is timed: on each grid all frames, and the given ones alone."""
    cases = {f"solver {size}": run.frames(last) for size, run in runs.items()}
    return cases | ({f"given {size}": run.frames(given) for size, run in runs.items()} if given else {})


def _grids(trajectories: Trajectories, grids: Sequence[int] | None) -> list[int]:
    """Cells along the longest axis, from coarse to the data's own."""
    own = max(trajectories.grid.shape)
    tried = [max(LEAST_CELLS, round(share * own)) for share in SHARES] if grids is None else grids
    if bad := [size for size in tried if grids is not None and not 4 <= size < own]:
        raise ConfigError(f"the solver is tried on grids from 4 to {own - 1} cells, below the data's own, got {bad}")
    return [*sorted({size for size in tried if size < own}), own]


def _predicted_seconds(times: dict[str, Tensor], size: int) -> float:
    """Median over rounds of the time for the predicted frames; NaN where the solver failed."""
    whole, given = times.get(f"solver {size}"), times.get(f"given {size}")
    if whole is None:
        return math.nan
    spent = whole if given is None else whole - given
    return max(0.0, float(spent.median()))


def _told(
    cases: Mapping[str, Callable[[], Tensor]], rounds: int, progress: Progress | None
) -> Mapping[str, Callable[[], Tensor]]:
    """The cases, each telling when it is done."""
    if progress is None:
        return cases
    total, done = len(cases) * (rounds + 1), itertools.count(1)

    def telling(run: Callable[[], Tensor]) -> Callable[[], Tensor]:
        def told() -> Tensor:
            answer = run()
            progress(next(done), total)
            return answer

        return told

    return {name: telling(run) for name, run in cases.items()}
