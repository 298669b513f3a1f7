"""What a rollout costs on this machine, in time and memory."""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import Samples, all_or, first_windows, heading, predict_frames
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.operators import as_operator, evaluation_mode, numbers_of
from spectrakan.fields import Trajectories

SAMPLES = 8
"""Samples that are rolled out as one batch where none are named."""
ROUNDS = 5


def rollout_cost(
    model: nn.Module,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    samples: Samples = None,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Seconds and memory of a rollout of `samples` (the first 8 unless named) as one batch.

    Seconds are wall-clock, the median of `rounds` after one to warm up; those per frame are per sample and frame.
    `peak_memory_mb` is of tensors that the rollout makes, its output included; weights are in `weights_mb`.
    """
    if rounds < 1:
        raise ConfigError(f"at least one round is needed, got {rounds}")
    operator, chosen = as_operator(model, trajectories), all_or(samples, trajectories, SAMPLES)
    frames = scored_frames(trajectories, operator.signature.history, horizon).horizon
    batch = first_windows(operator, trajectories, chosen, frames).gather(range(len(chosen)))

    def run() -> Tensor:
        return predict_frames(operator, batch.inputs, frames, batch.params, batch.grid)

    device, dtype = numbers_of(operator)
    with evaluation_mode(operator):
        spent = []
        for _ in range(rounds + 1):
            begin = time.perf_counter()
            run()
            spent.append(time.perf_counter() - begin)
        seconds, peak = statistics.median(spent[1:]), peak_bytes(run, device)
    weights = sum(tensor.numel() * tensor.element_size() for tensor in operator.state_dict().values())
    return heading(operator, trajectories, len(chosen), frames) | {
        "rounds": rounds,
        "device": device.type,
        "threads": torch.get_num_threads(),
        "precision": str(dtype).removeprefix("torch."),
        "seconds": seconds,
        "seconds_per_frame": seconds / (len(chosen) * frames),
        "peak_memory_mb": peak / 1e6,
        "weights_mb": weights / 1e6,
    }


def peak_bytes(run: Callable[[], object], device: torch.device) -> int:
    """Bytes that tensors of `run` hold at its peak beyond those that existed before.

    On a GPU this is the count of torch's allocator. The CPU has no such count, and the memory of the process includes
    freed memory; so live tensors are counted one by one. Work space inside an operation is not counted.

    >>> peak_bytes(lambda: (torch.zeros(1000) + 1).sum(), torch.device("cpu"))
    8000
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    live = _LiveTensors()
    with live:
        run()
    return live.peak


class _LiveTensors(TorchDispatchMode):
    """Counts the storages that operations make, until each is freed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now, self.peak = 0, 0
        self._known: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operation, then count the new storages of its result."""
        given = {id(leaf.untyped_storage()) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                # A view, or the result of an operation in place, lives in memory that existed already.
                if id(storage) not in given and storage not in self._known:
                    self._count(storage)
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        self._known.add(storage)
        weakref.finalize(storage, self._release, size)
        self.now += size
        self.peak = max(self.peak, self.now)

    def _release(self, size: int) -> None:
        self.now -= size
