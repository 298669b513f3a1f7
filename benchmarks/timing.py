"""Ratios of CPU time, taken in turns so that a noisy machine is noisy to both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(
    cases: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    warm_up: int = 2,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median seconds of each case; every round runs all of them once, in the order given.

    CPU time of the process unless another clock is given: other users of the machine do not count.
    """
    for run in cases.values():
        for _ in range(warm_up):
            run()
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, run in cases.items():
            started = clock()
            run()
            seconds[name].append(clock() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}
