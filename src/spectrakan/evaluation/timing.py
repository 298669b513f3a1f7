"""Times of several things on one machine, taken in turns so that a noisy machine is noisy to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor


def interleaved(cases: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, Tensor]:
    """Seconds on the clock of each case in each round, `(rounds,)`; a round runs every case once, in order.

    All cases run once before, to warm up. A case on a GPU must wait for its own answer.

    >>> found = interleaved({"short": lambda: time.sleep(0.001), "long": lambda: time.sleep(0.05)}, rounds=3)
    >>> bool(found["long"].median() > 3 * found["short"].median())
    True
    """
    for run in cases.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, run in cases.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in seconds.items()}
