"""Defaults of a run by task: ours, and PDEBench's own protocol.

PDEBench (facts of its release 0.1.0): Adam at 1e-3 with decay 1e-4 in the gradient, halved every 100 of 500
epochs, mean squared error on raw numbers summed over unrolled frames, frames predicted directly, no clipping.
Its split is not followed: there the test set also chooses the weights.
"""

from __future__ import annotations

from typing import Any, Literal

from spectrakan.errors import ConfigError, nearest

RecipeName = Literal["ours", "pdebench"]

OURS: dict[str, dict[str, Any]] = {
    "cns1d": {"training": {"mode": "autoregressive", "horizon": 4, "curriculum": 0.5}},
    "diffusion_reaction1d": {"training": {"mode": "pushforward", "horizon": 8, "gradient_steps": 4}},
    "darcy2d": {"training": {"epochs": 100}},
    "shallow_water2d": {
        "training": {"mode": "pushforward", "horizon": 8, "gradient_steps": 4, "batch_size": 8, "curriculum": 0.3}
    },
    "droplet2d": {"training": {"mode": "autoregressive", "horizon": 4, "curriculum": 0.3}},
    "climate2d": {"training": {"epochs": 30}},
}
"""What differs from the defaults of `TrainingSettings`."""

_PDEBENCH: dict[str, Any] = {
    "epochs": 500,
    "learning_rate": 1e-3,
    "loss": "mse",
    "step_reduction": "sum",
    "optimizer": "adam",
    "weight_decay": 1e-4,
    "schedule": "step",
    "halve_epochs": 100,
    "clip_norm": 0.0,
    "normalize": False,
}

PDEBENCH: dict[str, dict[str, Any]] = {
    "cns1d": {
        "data": {"history": 10},
        "training": {"batch_size": 100, "mode": "autoregressive", "horizon": 11},
    },
    "diffusion_reaction1d": {
        "data": {"history": 5},
        "training": {"batch_size": 50, "mode": "autoregressive", "horizon": 25},
    },
    "darcy2d": {"training": {"batch_size": 50}},
    "shallow_water2d": {
        "data": {"history": 10},
        "training": {"batch_size": 5, "mode": "autoregressive", "horizon": 91},
    },
}
"""Batch sizes, histories and unrolled frames of its configs, after its own clipping to the frames there are."""


def recipe(kind: str, task: str) -> dict[str, Any]:
    """Settings of a run that a recipe fixes for a task, as nested mappings."""
    if kind == "ours":
        return OURS.get(task, {})
    if kind != "pdebench":
        raise ConfigError(f"training.recipe: unknown recipe '{kind}'{nearest(str(kind), ('ours', 'pdebench'))}")
    if task not in PDEBENCH:
        raise ConfigError(f"PDEBench has no task '{task}'; its recipe exists for {', '.join(PDEBENCH)}")
    chosen = PDEBENCH[task]
    return {**chosen, "training": {**_PDEBENCH, **chosen["training"]}, "model": {"predict": "direct"}}
