"""Running out of memory, told in terms of what the user can change; and how much a run has used."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from spectrakan.errors import RunError
from spectrakan.training.settings import RunSettings

SIGNS = ("can't allocate memory", "not enough memory", "out of memory", "cannot allocate memory", "bad_alloc")


@contextmanager
def enough_memory(choices: RunSettings) -> Iterator[None]:
    """Turn every way of running out of memory into one `RunError` that names batch size and resolution."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError, RuntimeError, OSError) as problem:
        if not _is_shortage(problem):
            raise
        where = choices.data.resolution or "the task's own"
        raise RunError(
            f"not enough memory for training.batch_size={choices.training.batch_size} at data.resolution={where} "
            f"with {choices.training.horizon} unrolled frames; lower one of them, raise training.accumulate, "
            "or set training.checkpoint_activations=true"
        ) from None


def _is_shortage(problem: BaseException) -> bool:
    if isinstance(problem, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(problem).lower()
    return any(sign in text for sign in SIGNS)


def peak_memory_mb(device: torch.device) -> float:
    """The most memory that was in use: of the GPU where there is one, else of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 1e6 if sys.platform == "darwin" else used * 1024 / 1e6
