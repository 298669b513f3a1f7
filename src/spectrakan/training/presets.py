"""How a problem is trained and how large a model is: the only place that says so.

`preset(problem, model, budget)` gives the complete settings of a run. Commands, `sk.train`, the campaign, the demo
and the documents all use it. Budgets:

smoke      shows in seconds that everything runs
short      about 1,000 steps: minutes on two cores
long       ten times as many epochs as `short`
paper      500 epochs on as many samples as the paper has
"""

import math
from dataclasses import dataclass
from typing import Any

from spectrakan.config import build_settings
from spectrakan.data.problems import Problem
from spectrakan.errors import ConfigError, nearest
from spectrakan.models.catalog import complete_settings
from spectrakan.training.settings import RunSettings

BUDGETS = ("smoke", "short", "long", "paper")
LONGER = 10
"""Epochs of `long` over those of `short`."""
STEPS: dict[str, int] = {"smoke": 4, "short": 1_000, "long": 10_000}
"""Optimizer steps on problems that have no plan of their own."""
PAPER_EPOCHS = 500


@dataclass(frozen=True)
class Plan:
    """Data and training of a problem at one budget, the same for every model but for the learning rate."""

    data: dict[str, Any]
    training: dict[str, Any]


_TWO_STEPS = {"mode": "autoregressive", "horizon": 2, "curriculum": 0.5}

SHORT: dict[str, Plan] = {
    "cns1d": Plan(
        {"num_samples": 500, "test_samples": 100, "resolution": 128, "frames": 21},
        {"epochs": 8, "batch_size": 32, **_TWO_STEPS},
    ),
    # Every frame, as in the paper: the forecast starts at t = 0.04. Later the state is nearly constant in space.
    "diffusion_reaction1d": Plan(
        {"num_samples": 500, "test_samples": 100, "resolution": 256, "frames": 101},
        {"epochs": 1, "batch_size": 32, **_TWO_STEPS},
    ),
    "darcy2d": Plan({"num_samples": 1000, "test_samples": 200, "resolution": 64}, {"epochs": 3, "batch_size": 4}),
    # Every fifth of the 101 frames, so that time runs to its end.
    "shallow_water2d": Plan(
        {
            "num_samples": 200, "test_samples": 50, "resolution": 64, "solved_at": 128, "frames": 21,
            "stride_time": 5, "fields": ["height"],
        },
        {"epochs": 1, "batch_size": 2},
    ),
    "droplet2d": Plan(
        {"num_samples": 300, "test_samples": 60, "resolution": 32, "frames": 20}, {"epochs": 1, "batch_size": 4}
    ),
    "climate2d": Plan({}, {"epochs": 15, "batch_size": 16}),
}  # fmt: skip

_FEW: dict[str, Any] = {"num_samples": 6, "test_samples": 2, "resolution": 16, "frames": 12}
SMOKE: dict[str, Plan] = {
    "cns1d": Plan(_FEW, {"epochs": 1, "batch_size": 8}),
    "diffusion_reaction1d": Plan({**_FEW, "stride_time": 5}, {"epochs": 1, "batch_size": 8}),
    "darcy2d": Plan({"num_samples": 10, "test_samples": 4, "resolution": 16}, {"epochs": 2, "batch_size": 4}),
    "shallow_water2d": Plan(
        {**_FEW, "solved_at": 32, "stride_time": 2, "fields": ["height"]}, {"epochs": 1, "batch_size": 4}
    ),
    "droplet2d": Plan({**_FEW, "frames": 4}, {"epochs": 1, "batch_size": 8}),
    "climate2d": Plan({}, {"epochs": 1, "batch_size": 32}),
}


def _unrolled(horizon: int) -> dict[str, Any]:
    """Each trajectory is predicted once an epoch, from its first window to its end."""
    unrolled = {"mode": "autoregressive", "horizon": horizon, "curriculum": 0.5}
    return {**_PAPER, **unrolled, "checkpoint_activations": horizon > 16}


_PAPER: dict[str, Any] = {"epochs": PAPER_EPOCHS, "batch_size": 16, "validate_epochs": 5}
PAPER: dict[str, Plan] = {
    "cns1d": Plan({"num_samples": 10_000, "test_samples": 1_000, "resolution": 128}, _unrolled(11)),
    "diffusion_reaction1d": Plan({"num_samples": 10_000, "test_samples": 1_000, "resolution": 256}, _unrolled(96)),
    "darcy2d": Plan({"num_samples": 10_000, "test_samples": 1_000, "resolution": 64}, _PAPER),
    "shallow_water2d": Plan(
        {"num_samples": 1_000, "test_samples": 100, "resolution": 64, "fields": ["height"]}, _unrolled(91)
    ),
    "droplet2d": Plan({"num_samples": 1_000, "test_samples": 100, "resolution": 32, "frames": 32}, _unrolled(31)),
    "climate2d": Plan({}, _PAPER),
}

PLANS: dict[str, dict[str, Plan]] = {"smoke": SMOKE, "short": SHORT, "paper": PAPER}

_CVIT: dict[str, Any] = {
    "num_layers": 2, "num_heads": 4, "decoder_heads": 4, "latent_cells": 16, "latent_width": 32, "sharpness": 400.0
}  # fmt: skip
_FFNO: dict[str, Any] = {"width": 40, "num_layers": 6, "mlp_ratio": 2, "share_weights": False, "gain": 1.0}
_TRANSOLVER = {"width": 64, "num_layers": 3, "num_heads": 4, "num_slices": 16}

SIZES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # PDEBench's has 2.7 (1D) and 7.8 (2D) million weights; narrower by the same factor at every level.
    "unet": ({"width": 8}, {"width": 12}),
    # PDEBench's width 20 with 12 modes in 2D; in 1D that has 44 thousand weights, so it is larger.
    "fno": ({"width": 40, "num_modes": 16}, {"width": 20, "num_modes": 12}),
    # 24 layers of width 64 as published cost 25 times a step of SpectraKAN: best of trials at about its time.
    "ffno": ({"num_modes": 24, **_FFNO}, {"num_modes": 20, **_FFNO}),
    # One pole-residue layer as published in 2D; in 1D wider than published (width 4).
    "lno": ({"width": 16, "num_modes": 16}, {"width": 16, "num_modes": 4}),
    # 0.1 million weights in 2D, as its time allows; published: 1.8 million, 25 times the time.
    "transolver": (_TRANSOLVER, _TRANSOLVER),
    # No size is published for these tasks; modes of FNO, with both local branches.
    "local_fno": ({"width": 36, "num_modes": 16}, {"width": 16, "num_modes": 12}),
    # Published: 30 centres, 3.3 million weights in 1D; in 2D 0.7 million and six times FNO's step.
    "deepokan": ({"num_centres": 8}, {"num_centres": 16}),
    # Published: 2.6 (1D) and 6 (2D) million weights.
    "cvit": ({"width": 64, "decoder_width": 64, **_CVIT}, {"width": 96, "decoder_width": 96, **_CVIT}),
}
"""Settings of baselines on one axis and on several, near SpectraKAN's number of weights or time; models that are not
listed have their default."""

DEFAULT_RATE = 2e-3
RATES: dict[str, tuple[float, float]] = {
    "spectrakan": (1e-2, 1e-2),
    "amfno": (1e-2, 1e-2),
    "unet": (3e-3, 1e-3),
    "fno": (1e-2, 1e-2),
    "ffno": (1e-2, 1e-2),
    "lno": (1e-2, 1e-2),
    "transolver": (1e-2, 3e-3),
    "local_fno": (1e-2, 1e-2),
    "deepokan": (1e-2, 3e-3),
    "cvit": (3e-3, 1e-3),
}
"""Learning rates on one axis and on several of problems that are not among `OWN_RATES`."""
OWN_RATES: dict[str, dict[str, float]] = {
    "darcy2d": {"ffno": 3e-3},
    "diffusion_reaction1d": {"spectrakan/default": 1e-3, "ffno": 1e-3},
    "droplet2d": {"spectrakan/default": 3e-3},
}
"""Learning rates by problem and model, or variant such as `spectrakan/paper`, bracketed by trials on validation
samples (`python -m experiments rates`)."""


def preset(
    problem: Problem,
    model: str = "spectrakan",
    budget: str = "short",
    *,
    variant: str = "default",
    windows: int | None = None,
) -> RunSettings:
    """The complete settings of a run: data, model, training and runtime.

    Problems with a plan of their own are solved and trained as it says. With `windows` (training windows of a
    file or of arrays) epochs follow from the steps of the budget instead, and data settings are left alone.
    """
    if budget not in BUDGETS:
        raise ConfigError(f"unknown budget '{budget}'{nearest(budget, BUDGETS)}")
    plan = _plan(problem, model, budget, windows)
    size = size_of(model, problem.space_dims, variant)
    usual = RATES.get(model, (DEFAULT_RATE, DEFAULT_RATE))[problem.space_dims > 1]
    rates = OWN_RATES.get(problem.name, {})
    rate = rates.get(f"{model}/{variant}", rates.get(model, usual))
    return build_settings(
        RunSettings,
        {
            "task": problem.name,
            "budget": budget,
            "data": plan.data,
            "model": {"name": model, "variant": variant, **complete_settings(model, variant, size)},
            "training": {"learning_rate": rate, **plan.training},
        },
    )


def size_of(model: str, space_dims: int, variant: str = "default") -> dict[str, Any]:
    """The settings that fix a model's size; a named variant has its own."""
    if model not in SIZES or variant != "default":
        return {}
    return SIZES[model][space_dims > 1]


def _plan(problem: Problem, model: str, budget: str, windows: int | None) -> Plan:
    known = PLANS["short" if budget == "long" else budget].get(problem.name)
    if known is None:
        return _general(problem, budget, windows)
    training = dict(known.training)
    if budget == "long":
        training["epochs"] *= LONGER
    if windows is None or budget not in STEPS:
        return Plan(known.data if windows is None else {}, training)
    return Plan({}, {**training, "epochs": _epochs(STEPS[budget], training["batch_size"], windows)})


def _general(problem: Problem, budget: str, windows: int | None) -> Plan:
    """The plan of a problem that has none of its own: one-step training by the steps of the budget."""
    cells = math.prod(problem.resolution)
    batch_size = 32 if cells <= 512 else 8 if cells <= 64**2 else 4
    if windows is None:
        frames = max(1, problem.frames - problem.history)
        windows = 80 * (1 if problem.steady else frames)  # of the samples that are generated by default
    epochs = _epochs(STEPS[budget], batch_size, windows) if budget in STEPS else PAPER_EPOCHS
    return Plan({}, {"epochs": epochs, "batch_size": batch_size})


def _epochs(steps: int, batch_size: int, windows: int) -> int:
    return max(1, round(steps * batch_size / max(1, windows)))
