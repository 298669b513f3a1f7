"""How large a campaign is: data, budget and competitors of each task, at three scales.

`smoke` shows in seconds that everything runs, `small` fits a machine with two cores, `paper` is the full protocol.
Everything that decides what a cell costs stands in the literal tables of this file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spectrakan.errors import ConfigError, nearest

TRAIN_SEED = 0
"""Seed of all samples for training and validation."""
TEST_SEED = 640_187_259
"""Seed of the final test samples, used for nothing else; a case may have one of its own."""

DEVELOPMENT_SEED = 777
"""Seed of samples to look at while developing."""


@dataclass(frozen=True)
class Case:
    """A task with its data and the budget that every model gets on it."""

    task: str
    num_samples: int
    """Samples for training and validation together; nine of ten train."""
    test_samples: int
    """Samples from the reserved seed; of the climate, the last days."""
    training: dict[str, Any]
    """The recipe of the case, the same for all models but for the learning rate."""
    resolution: int | None = None
    """Cells per axis; None: the task's."""
    frames: int | None = None
    """Frames that are kept of a sample; None: the task's."""
    stride: int = 1
    """Every n-th frame of the task's own clock is kept."""
    fields: tuple[str, ...] = ()
    """Fields that are kept; empty: all."""
    long_samples: int = 8
    """Test samples that are rolled out five times as far."""
    resolutions: tuple[int, ...] = ()
    """Other resolutions at which test samples are predicted."""
    test_seed: int = TEST_SEED
    """Seed of the test samples; another one where a test set was given up (docs/protocol.md)."""
    solved_at: int | None = None
    """Cells per axis of the solver's grid, of whose solution every resolution has the cell means, as files of a
    benchmark have; None: each resolution is solved on its own grid."""


@dataclass(frozen=True)
class Scale:
    """A whole campaign: its cases and who competes in them."""

    name: str
    cases: dict[str, Case]
    baselines: tuple[str, ...]
    floors: tuple[str, ...]
    seeds: tuple[int, ...]
    """Seeds of SpectraKAN and of the strongest baselines; the others have the first only."""
    rates: tuple[float, ...]
    """Learning rates that every model may choose from, on validation data."""
    rate_share: float
    """Share of the epochs of a case that a trial of a learning rate gets."""
    rate_cases: dict[int, str]
    """The case on which rates are tried, by number of axes."""
    efficiency: tuple[int, ...]
    """Numbers of samples of the data-efficiency table; the last one is the whole set."""
    efficiency_case: str = "darcy2d"
    runtime: dict[str, Any] = field(default_factory=dict)


BASELINES = ("unet", "fno", "ffno", "lno", "transolver", "local_fno", "deepokan", "cvit")
FLOORS = ("persistence", "climatology", "ridge")

SMALL_CASES = {
    "cns1d": Case(
        task="cns1d", num_samples=500, test_samples=100, resolution=128, frames=21,
        training={"epochs": 8, "batch_size": 32, "mode": "autoregressive", "horizon": 2, "curriculum": 0.5},
    ),
    "diffusion_reaction1d": Case(
        task="diffusion_reaction1d", num_samples=500, test_samples=100, resolution=256, frames=21, stride=5,
        training={"epochs": 4, "batch_size": 32, "mode": "autoregressive", "horizon": 2, "curriculum": 0.5},
    ),
    "darcy2d": Case(
        task="darcy2d", num_samples=1000, test_samples=200, resolution=64,
        training={"epochs": 3, "batch_size": 4, "mode": "one_step", "horizon": 1},
    ),
    "shallow_water2d": Case(
        task="shallow_water2d", num_samples=200, test_samples=50, resolution=64, frames=21, stride=5,
        fields=("height",), resolutions=(32, 128), solved_at=128,
        training={"epochs": 1, "batch_size": 2, "mode": "one_step", "horizon": 1, "curriculum": 0.0},
    ),
    "shallow_water2d_fields": Case(
        task="shallow_water2d", num_samples=200, test_samples=50, resolution=64, frames=21, stride=5, solved_at=128,
        training={"epochs": 1, "batch_size": 2, "mode": "one_step", "horizon": 1, "curriculum": 0.0},
    ),
    "droplet2d": Case(
        task="droplet2d", num_samples=300, test_samples=60, resolution=32, frames=20,
        training={"epochs": 1, "batch_size": 4, "mode": "one_step", "horizon": 1, "curriculum": 0.0},
    ),
    "climate2d": Case(
        task="climate2d", num_samples=365, test_samples=355,
        training={"epochs": 15, "batch_size": 16, "mode": "one_step", "horizon": 1},
    ),
}  # fmt: skip
"""Frames of diffusion-reaction and shallow water are every fifth of the task's 101, so that time runs to its end."""

SMOKE_CASES = {
    "cns1d": Case(
        task="cns1d", num_samples=6, test_samples=2, resolution=16, frames=12, long_samples=1,
        training={"epochs": 1, "batch_size": 8, "mode": "one_step", "horizon": 1, "curriculum": 0.0},
    ),
    "darcy2d": Case(
        task="darcy2d", num_samples=10, test_samples=4, resolution=16,
        training={"epochs": 2, "batch_size": 4, "mode": "one_step", "horizon": 1},
    ),
    "shallow_water2d": Case(
        task="shallow_water2d", num_samples=6, test_samples=2, resolution=16, frames=12, stride=2,
        fields=("height",), long_samples=1, resolutions=(8, 32), solved_at=32,
        training={"epochs": 1, "batch_size": 4, "mode": "one_step", "horizon": 1, "curriculum": 0.0},
    ),
    "droplet2d": Case(
        task="droplet2d", num_samples=6, test_samples=2, resolution=16, frames=4, long_samples=1,
        training={"epochs": 1, "batch_size": 8, "mode": "one_step", "horizon": 1, "curriculum": 0.0},
    ),
}  # fmt: skip

_PAPER = {"epochs": 500, "batch_size": 16, "validate_epochs": 5}
_STEADY = {**_PAPER, "mode": "one_step", "horizon": 1}


def _whole(horizon: int) -> dict[str, Any]:
    """As PDEBench trains: an epoch predicts each trajectory once, from its first window to its end."""
    unrolled = {"mode": "autoregressive", "horizon": horizon, "curriculum": 0.5}
    return {**_PAPER, **unrolled, "checkpoint_activations": horizon > 16}


PAPER_CASES = {
    "cns1d": Case("cns1d", 10_000, 1_000, _whole(11), resolution=128),
    "diffusion_reaction1d": Case("diffusion_reaction1d", 10_000, 1_000, _whole(96), resolution=256),
    "darcy2d": Case("darcy2d", 10_000, 1_000, _STEADY, resolution=64),
    "shallow_water2d": Case(
        "shallow_water2d", 1_000, 100, _whole(91), resolution=64, fields=("height",), resolutions=(32, 128)
    ),
    "shallow_water2d_fields": Case("shallow_water2d", 1_000, 100, _whole(91), resolution=64),
    "droplet2d": Case("droplet2d", 1_000, 100, _whole(31), resolution=32, frames=32),
    "climate2d": Case("climate2d", 365, 355, _STEADY),
}

SCALES: dict[str, Scale] = {
    "smoke": Scale(
        name="smoke",
        cases=SMOKE_CASES,
        baselines=("fno",),
        floors=("persistence", "climatology"),
        seeds=(0, 1),
        rates=(1e-3, 4e-3),
        rate_share=0.5,
        rate_cases={1: "cns1d", 2: "darcy2d"},
        efficiency=(5, 10),
        runtime={"threads": 1},
    ),
    "small": Scale(
        name="small",
        cases=SMALL_CASES,
        baselines=BASELINES,
        floors=FLOORS,
        seeds=(0, 1, 2),
        rates=(1e-3, 3e-3, 1e-2),
        rate_share=0.25,
        rate_cases={1: "cns1d", 2: "darcy2d"},
        efficiency=(100, 300, 1000),
        runtime={"threads": 1},
    ),
    "paper": Scale(
        name="paper",
        cases=PAPER_CASES,
        baselines=BASELINES,
        floors=FLOORS,
        seeds=(0, 1, 2),
        rates=(5e-4, 1e-3, 2e-3),
        rate_share=0.04,
        rate_cases={1: "cns1d", 2: "droplet2d"},
        efficiency=(100, 1_000, 10_000),
    ),
}


def scale_named(name: str) -> Scale:
    """The scale of that name; an unknown one raises `ConfigError` with the nearest."""
    if name not in SCALES:
        raise ConfigError(f"unknown scale '{name}'{nearest(name, SCALES)}; known: {', '.join(SCALES)}")
    return SCALES[name]


def case_named(scale: Scale, name: str) -> Case:
    """A case of a scale."""
    if name not in scale.cases:
        raise ConfigError(f"scale {scale.name} has no case '{name}'{nearest(name, scale.cases)}")
    return scale.cases[name]
