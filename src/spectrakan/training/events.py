"""What a training loop tells those who listen: display, log and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class StepTaken:
    """One step of the optimizer."""

    epoch: int
    step: int
    total_steps: int
    loss: float
    rate: float
    gradient_norm: float
    samples: int
    """Windows in the step, over all processes."""
    seconds: float
    compute_seconds: float
    """Of these: forward, backward and optimizer."""


@dataclass(frozen=True)
class EpochEnded:
    """All windows were seen once more; `validation` is None where none was due."""

    epoch: int
    step: int
    epochs: int
    loss: float
    validation: float | None
    is_best: bool
    seconds: float


@dataclass(frozen=True)
class Recovered:
    """A step was not taken; training goes on from its last good state at a lower rate."""

    epoch: int
    step: int
    reason: str
    attempt: int
    rate_factor: float


Event = StepTaken | EpochEnded | Recovered
Listener = Callable[[Event], None]
