"""What a record keeps of rollouts to five times the horizon of the task."""

from __future__ import annotations

from typing import Any

from spectrakan.evaluation.stability import stability
from spectrakan.experiments.datasets import LONGER
from spectrakan.fields import Trajectories
from spectrakan.models.operator import Operator


def long_rollout(model: Operator, trajectories: Trajectories, horizon: int) -> dict[str, Any]:
    """The median over samples of the relative L2 of each frame, at one and at five horizons, and how many blew up.

    `growth` is the last error over that at the horizon; it and the errors are None where they are not finite.
    """
    found = stability(model, trajectories, horizon, factor=LONGER)
    curve = found["median_relative_l2"]
    here, end = curve[horizon - 1], curve[-1]
    return {
        "horizon": found["horizon"],
        "num_samples": found["num_samples"],
        "blown_up": found["blow_ups"],
        "times": found["times"],
        "relative_l2": curve,
        "at_horizon": here,
        "at_end": end,
        "growth": end / here if here and end is not None else None,
    }
