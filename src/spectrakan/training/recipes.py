"""Defaults of a run by task: ours, and PDEBench's own protocol.

PDEBench (facts of its release 0.1.0): Adam at 1e-3 with decay 1e-4 in the gradient, halved every 100 of 500
epochs, mean squared error on raw numbers summed over unrolled frames, one window from the start of each trajectory,
frames predicted directly, no clipping, weights chosen by the mean squared error of the frames trained on. Its split,
in which the test set chooses the weights, is `data.split.pdebench`, and no part of the recipe.
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
    "starts": "first",
    "optimizer": "adam",
    "weight_decay": 1e-4,
    "schedule": "step",
    "halve_epochs": 100,
    "clip_norm": 0.0,
    "normalize": False,
    "validation": "mse",
}

PDEBENCH: dict[str, dict[str, Any]] = {
    "cns1d": {
        "data": {"history": 10},
        "training": {"batch_size": 100, "mode": "autoregressive", "horizon": 11, "validate_epochs": 2},
    },
    "diffusion_reaction1d": {
        "data": {"history": 5},
        "training": {"batch_size": 50, "mode": "autoregressive", "horizon": 25},
    },
    "darcy2d": {"training": {"batch_size": 50, "validate_epochs": 2}},
    "shallow_water2d": {
        "data": {"history": 10},
        "training": {"batch_size": 5, "mode": "autoregressive", "horizon": 91, "validate_epochs": 2},
    },
}
"""Batch sizes, histories and unrolled frames of its configs, after its own clipping to the frames there are."""

PDEBENCH_UNET: dict[str, dict[str, Any]] = {
    "cns1d": {"mode": "pushforward", "gradient_steps": 20},
    "diffusion_reaction1d": {"mode": "pushforward", "gradient_steps": 10},
    "darcy2d": {"noise": 1e-3},
    "shallow_water2d": {"mode": "pushforward", "gradient_steps": 20},
}
"""How it trains its U-Net otherwise: the last frames only, or noise on the input where there is one step."""


def recipe(kind: str, task: str, model: str) -> dict[str, Any]:
    """Settings of a run that a recipe fixes for a task and a model, as nested mappings."""
    if kind == "ours":
        return OURS.get(task, {})
    if kind != "pdebench":
        raise ConfigError(f"training.recipe: unknown recipe '{kind}'{nearest(str(kind), ('ours', 'pdebench'))}")
    if task not in PDEBENCH:
        raise ConfigError(f"PDEBench has no task '{task}'; its recipe exists for {', '.join(PDEBENCH)}")
    chosen = PDEBENCH[task]
    training = {**_PDEBENCH, **chosen["training"], **(PDEBENCH_UNET[task] if model == "unet" else {})}
    training["validation_frames"] = training.get("horizon", 1)
    return {**chosen, "training": training, "model": {"predict": "direct"}}
