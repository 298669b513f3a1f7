"""Windows in batches: shuffled by seed, shared among processes, resumable to the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.data.windows import Windows
from spectrakan.errors import ConfigError
from spectrakan.fields import Window


@settings
class LoaderSettings:
    """How windows are put into batches."""

    batch_size: Annotated[int, Field(ge=1)] = 16
    """Windows in a batch of one process; all processes together see world_size times as many."""
    shuffle: bool = True
    """Whether each epoch has its own random order."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the orders; the order of an epoch depends on (seed, epoch) alone."""
    rank: Annotated[int, Field(ge=0)] = 0
    """Number of this process."""
    world_size: Annotated[int, Field(ge=1)] = 1
    """Number of processes that share the windows."""
    remainder: Literal["drop", "keep"] = "drop"
    """Windows beyond a multiple of world_size: `drop` gives every process equally many, so that none waits
    for another (training); `keep` reads each window exactly once (evaluation)."""
    pin_memory: bool = False
    """Whether batches are put in page-locked memory, from which a GPU copies faster."""

    def __post_init__(self) -> None:
        if self.rank >= self.world_size:
            raise ConfigError(f"rank must be below world_size {self.world_size}, got {self.rank}")


class Loader:
    """Iterating gives the batches that are left of the current epoch, then the epoch number goes up.

    The global batch b of an epoch is cut from one order that all processes know, and each takes its own
    equal piece of it: the union over processes is what one process with the global batch size would see.
    `state()` after a batch names the next one; `restore` continues there, bit for bit.
    """

    def __init__(self, windows: Windows, choices: LoaderSettings | None = None) -> None:
        self.windows = windows
        self.choices = LoaderSettings() if choices is None else choices
        self.epoch = 0
        self.batch = 0
        if self.num_batches == 0:
            raise ConfigError(
                f"{len(windows)} windows give no batch to each of {self.choices.world_size} processes; "
                "use more samples or fewer processes"
            )

    @property
    def num_batches(self) -> int:
        """Batches of an epoch, the same for every process (one of `keep`'s last ones may be empty)."""
        together = self.choices.batch_size * self.choices.world_size
        return -(-self._used() // together)

    def __len__(self) -> int:
        return self.num_batches

    def __iter__(self) -> Iterator[Window]:
        order = self.order(self.epoch)
        while self.batch < self.num_batches:
            mine = self._share(order, self.batch)
            self.batch += 1
            if len(mine):
                yield self._pinned(self.windows.gather(mine.tolist()))
        self.epoch, self.batch = self.epoch + 1, 0

    def order(self, epoch: int) -> npt.NDArray[np.int64]:
        """Numbers of the windows of an epoch, for all processes together."""
        if not self.choices.shuffle:
            return np.arange(self._used())
        shuffled = np.random.default_rng((self.choices.seed, epoch)).permutation(len(self.windows))
        return shuffled[: self._used()]

    def state(self) -> dict[str, int]:
        """Where the loader stands, as plain numbers: the epoch, and its next batch."""
        return {"epoch": self.epoch, "batch": self.batch}

    def restore(self, state: Mapping[str, int]) -> None:
        """Stand where `state` was taken."""
        if state.keys() != {"epoch", "batch"}:
            raise ConfigError(f"a loader's state has the keys batch and epoch, got {sorted(state)}")
        epoch, batch = state["epoch"], state["batch"]
        if epoch < 0 or not 0 <= batch <= self.num_batches:
            raise ConfigError(
                f"state names batch {batch} of epoch {epoch}, this loader has {self.num_batches} batches; "
                "batch size, processes and data must be those of the saved run"
            )
        self.epoch, self.batch = epoch, batch

    def _used(self) -> int:
        """Windows of an epoch that are read by some process."""
        total, processes = len(self.windows), self.choices.world_size
        return total - total % processes if self.choices.remainder == "drop" else total

    def _share(self, order: npt.NDArray[np.int64], batch: int) -> npt.NDArray[np.int64]:
        """The piece of a global batch that this process takes; pieces differ in length by at most one."""
        together = self.choices.batch_size * self.choices.world_size
        piece = order[batch * together : (batch + 1) * together]
        return np.array_split(piece, self.choices.world_size)[self.choices.rank]

    def _pinned(self, window: Window) -> Window:
        if not self.choices.pin_memory:
            return window
        return replace(
            window,
            inputs=window.inputs.pin_memory(),
            targets=window.targets.pin_memory(),
            params=_pin(window.params),
            observed=_pin(window.observed),
        )


def _pin(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.pin_memory()
