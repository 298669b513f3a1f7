"""Windows in batches: shuffled by seed, shared among processes, resumable to the batch."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spectrakan.data.windows import Windows
from spectrakan.errors import ConfigError
from spectrakan.fields import Window


class Loader:
    """Iterating gives the batches that are left of the current epoch, then the epoch number goes up.

    The order of an epoch depends on (seed, epoch) alone. Its global batch b is cut from one order that all
    `world_size` processes know, and each takes its own equal piece of `batch_size` windows: the union over processes
    is what one process with the global batch size would see. Windows beyond a multiple of `world_size` are left out
    of an epoch, so that no process waits for another. `state()` after a batch names the next one; `restore`
    continues there, bit for bit. `pin_memory` puts batches in page-locked memory, from which a GPU copies faster.
    """

    def __init__(
        self,
        windows: Windows,
        batch_size: int = 16,
        seed: int = 0,
        *,
        rank: int = 0,
        world_size: int = 1,
        pin_memory: bool = False,
    ) -> None:
        self.windows, self.batch_size, self.seed, self.pin_memory = windows, batch_size, seed, pin_memory
        self.rank, self.world_size = rank, world_size
        self.epoch = self.batch = 0
        if len(self) == 0:
            raise ConfigError(
                f"{len(windows)} windows give no batch to each of {world_size} processes; "
                "use more samples or fewer processes"
            )

    def __len__(self) -> int:
        """Batches of an epoch, the same for every process."""
        return -(-(len(self.windows) // self.world_size) // self.batch_size)

    def __iter__(self) -> Iterator[Window]:
        total, together = len(self.windows), self.batch_size * self.world_size
        order = np.random.default_rng((self.seed, self.epoch)).permutation(total)[: total - total % self.world_size]
        while self.batch < len(self):
            piece: npt.NDArray[np.int64] = order[self.batch * together : (self.batch + 1) * together]
            mine = np.array_split(piece, self.world_size)[self.rank]
            self.batch += 1
            window = self.windows.gather(mine.tolist())
            yield _pinned(window) if self.pin_memory else window
        self.epoch, self.batch = self.epoch + 1, 0

    def state(self) -> dict[str, int]:
        """Where the loader stands, as plain numbers: the epoch, and its next batch."""
        return {"epoch": self.epoch, "batch": self.batch}

    def restore(self, state: Mapping[str, int]) -> None:
        """Stand where `state` was taken."""
        epoch, batch = state["epoch"], state["batch"]
        if epoch < 0 or not 0 <= batch <= len(self):
            raise ConfigError(
                f"state names batch {batch} of epoch {epoch}, this loader has {len(self)} batches; "
                "batch size, processes and data must be those of the saved run"
            )
        self.epoch, self.batch = epoch, batch


def _pinned(window: Window) -> Window:
    tensors = {name: getattr(window, name) for name in ("inputs", "targets", "params")}
    return replace(window, **{name: tensor.pin_memory() for name, tensor in tensors.items() if tensor is not None})
