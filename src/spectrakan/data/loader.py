"""Windows in batches: shuffled by seed, shared among processes, resumable to the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

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
    """Number of processes that share the windows; windows beyond a multiple of it are left out of an epoch, so that
    no process waits for another."""
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

    def __init__(self, windows: Windows, config: LoaderSettings | None = None) -> None:
        self.windows = windows
        self.config = LoaderSettings() if config is None else config
        self.epoch = 0
        self.batch = 0
        if self.num_batches == 0:
            raise ConfigError(
                f"{len(windows)} windows give no batch to each of {self.config.world_size} processes; "
                "use more samples or fewer processes"
            )

    @property
    def num_batches(self) -> int:
        """Batches of an epoch, the same for every process."""
        return -(-(len(self.windows) // self.config.world_size) // self.config.batch_size)

    def __len__(self) -> int:
        return self.num_batches

    def __iter__(self) -> Iterator[Window]:
        order = self.order(self.epoch)
        together = self.config.batch_size * self.config.world_size
        while self.batch < self.num_batches:
            piece = order[self.batch * together : (self.batch + 1) * together]
            mine = np.array_split(piece, self.config.world_size)[self.config.rank]
            self.batch += 1
            window = self.windows.gather(mine.tolist())
            yield _pinned(window) if self.config.pin_memory else window
        self.epoch, self.batch = self.epoch + 1, 0

    def order(self, epoch: int) -> npt.NDArray[np.int64]:
        """Numbers of the windows of an epoch, for all processes together."""
        total = len(self.windows)
        numbers = np.arange(total)
        if self.config.shuffle:
            numbers = np.random.default_rng((self.config.seed, epoch)).permutation(total)
        return numbers[: total - total % self.config.world_size]

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


def _pinned(window: Window) -> Window:
    tensors = {name: getattr(window, name) for name in ("inputs", "targets", "params", "observed")}
    return replace(window, **{name: tensor.pin_memory() for name, tensor in tensors.items() if tensor is not None})
