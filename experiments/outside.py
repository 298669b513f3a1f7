"""Scores of a family's model where it was not trained: other parameters, another time step.

outside      one parameter lies beyond an end of its range, the others within theirs (`Family.outside`)
other_step   every second frame: twice the time step of training, over the same time

Operators of the families receive no time step. With given parameters nothing shows them that the step is another, so
that their error is that of a wrong step; with hidden ones the history shows it.
"""

from __future__ import annotations

from typing import Any

from experiments.cells import case_settings
from experiments.datasets import Datasets
from experiments.families.catalog import family_of
from experiments.scales import case_named
from experiments.tails import sample_errors, summary_of
from spectrakan.models.operator import Operator

SAMPLES = 100
"""Samples of each kind."""
STRIDE = 2
"""The other time step, in steps of training."""


def outside_scores(model: Operator, case: str, reader: str, datasets: Datasets) -> dict[str, Any]:
    """RMSE with median and tails, as `outside` (all sides, and each alone) and `other_step`; {} without a family."""
    family = family_of(case)
    if family is None:
        return {}
    data, problem = case_settings(datasets.scale.name, case).data, case_named(case).problem
    frames, history = data.frames or problem.frames, data.history or problem.history
    ranges = family.outside()
    few = {"num_samples": SAMPLES // len(ranges), "frames": frames}
    sides = {}
    for side, params in ranges.items():
        found = datasets.other_test(case, reader, f"outside_{side}", {**few, "params": {**data.params, **params}})
        sides[side] = summary_of(sample_errors(model, found.trajectories, frames - history))
    errors = [side["rmse"] for side in sides.values()]
    mean = None if None in errors else sum(errors) / len(errors)
    kept = (frames - 1) // STRIDE + 1
    slower = {"num_samples": SAMPLES, "frames": kept, "stride_time": STRIDE * data.stride_time}
    other = datasets.other_test(case, reader, f"step{STRIDE}", slower)
    return {
        "outside": {"rmse": mean, "sides": sides},
        "other_step": {
            "stride": STRIDE,
            "horizon": kept - history,
            **summary_of(sample_errors(model, other.trajectories, kept - history)),
        },
    }
