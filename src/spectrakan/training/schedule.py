"""The learning rate as a pure function of the step, so there is nothing to save or restore."""

from __future__ import annotations

import math
from typing import Literal

from spectrakan.errors import ConfigError

ScheduleName = Literal["one_cycle", "cosine", "step", "constant"]


def rate_factor(name: ScheduleName, step: int, total: int, *, warmup: float = 0.1, halve_every: int = 0) -> float:
    """What the peak rate is multiplied by at `step` of `total`.

    one_cycle   cosine from 1/25 up to 1 over the share `warmup`, then cosine down to 1e-4 (Smith 2018)
    cosine      straight up to 1 over `warmup`, then cosine down to 0
    step        halved every `halve_every` steps, as PDEBench does every 100 epochs
    constant    1

    >>> [round(rate_factor("one_cycle", step, 101, warmup=0.3), 3) for step in (0, 30, 100)]
    [0.04, 1.0, 0.0]
    """
    if name == "constant":
        return 1.0
    if name == "step":
        if halve_every < 1:
            raise ConfigError(f"the step schedule needs halve_every of at least 1, got {halve_every}")
        return 0.5 ** (step // halve_every)
    peak = warmup * max(total - 1, 1)
    if step < peak:
        rise = step / peak
        return _between(1 / 25, 1.0, rise) if name == "one_cycle" else (step + 1) / (peak + 1)
    fall = (step - peak) / max(total - 1 - peak, 1)
    return _between(1.0, 1e-4 if name == "one_cycle" else 0.0, min(fall, 1.0))


def _between(start: float, end: float, share: float) -> float:
    """Half a cosine wave from `start` to `end`."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
