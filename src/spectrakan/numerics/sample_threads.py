"""Work on a batch in parts, several of them at the same time."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

MOST_THREADS = 8
"""More would wait for each other, for only one thread at a time can start operations."""

CACHED = 2**17
"""Numbers of a state that are worked on together, so that they stay in the processor's cache."""


def samples_at_once(batch: Tensor, numbers_per_sample: int) -> int:
    """Samples of a batch that stay in the cache together; all of them on a device that is no processor."""
    if batch.device.type != "cpu":
        return max(1, len(batch))
    return max(1, CACHED // numbers_per_sample)


def for_each_part(num_samples: int, at_once: int, work: Callable[[slice], None]) -> None:
    """Call `work` on consecutive parts of at most `at_once` samples, on as many threads as torch has.

    Threads with a part of their own meet only at the end. Threads that share every small operation, as
    torch's own do, meet thousands of times a second, and stand still whenever another program holds one core.
    So inside the workers torch keeps to one thread; its number of threads is as before when this returns.

    >>> seen = torch.zeros(5)
    >>> for_each_part(5, 2, lambda part: seen[part].add_(1))
    >>> seen.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    available = torch.get_num_threads()
    threads = max(1, min(available, MOST_THREADS, num_samples))
    # As many parts as go evenly onto the threads, all of about one size.
    rounds = max(1, math.ceil(num_samples / (at_once * threads)))
    size = max(1, math.ceil(num_samples / (rounds * threads)))
    parts = [slice(first, min(first + size, num_samples)) for first in range(0, num_samples, size)]
    if threads < 2:
        for part in parts:
            work(part)
        return
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            # Going through the results raises the first error and drops the parts that have not begun.
            for _ in pool.map(work, parts):
                pass
    finally:
        torch.set_num_threads(available)
