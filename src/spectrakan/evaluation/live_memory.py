"""The most memory that tensors of a computation hold at once.

On a GPU it is what torch's allocator has handed out. On the CPU there is no such count, and what the system says of
the process keeps memory that was freed and used again; so live tensors are counted one by one as operations make
them. Work space inside an operation is not seen.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def peak_bytes(run: Callable[[], object], device: torch.device) -> int:
    """Bytes that `run` holds at its peak beyond what was there before.

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
    """Counts the storages that operations make, until each is let go."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = 0
        self.peak = 0
        self._known: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operation, then count what it gave that is new."""
        given = {id(leaf.untyped_storage()) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        answer = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(answer):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                # A view, or the answer of an operation in place, lives in memory that was there already.
                if id(storage) not in given and storage not in self._known:
                    self._count(storage)
        return answer

    def _count(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        self._known.add(storage)
        weakref.finalize(storage, self._release, size)
        self.now += size
        self.peak = max(self.peak, self.now)

    def _release(self, size: int) -> None:
        self.now -= size
