"""Work on a Dask cluster: processes of this machine (`local:N`), or those of a scheduler (`tcp://HOST:PORT`).

Dask does the scheduling: work of a worker that is lost is done again by another one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.errors import ConfigError, RunError, SpectraKANError, require_package
from spectrakan.fields.trajectories import Array, Progress, blocks, samples_per_block

SECONDS_TO_JOIN = 60
"""Time that a scheduler and its first worker have to answer."""
BLOCKS_AHEAD = 2
"""Blocks of samples that each worker has to do, so that it need not wait for the file."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the cluster at that address; processes of this machine end with the block."""
    require_package("distributed", "cluster", "--cluster")
    dask: Any = import_module("distributed")
    kind, _, count = address.partition(":")
    if kind == "local" and count.isdigit() and int(count) > 0:
        config = {"n_workers": int(count), "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
        with dask.LocalCluster(**config, silence_logs=logging.CRITICAL) as cluster, dask.Client(cluster) as client:
            yield client
        return
    if "://" not in address:
        raise ConfigError(f"--cluster takes local:N or the address of a scheduler, tcp://HOST:PORT, got '{address}'")
    try:
        client = dask.Client(address, timeout=SECONDS_TO_JOIN)
    except (OSError, ValueError) as problem:
        raise RunError(f"no scheduler answers at {address}: {problem}; start one with `dask scheduler`") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=SECONDS_TO_JOIN)
        except TimeoutError:
            raise RunError(f"the scheduler at {address} has no worker; start some: dask worker {address}") from None
        yield client


class ClusterArray:
    """An array of samples that workers solve for, `(samples, time, *space, channel)`, some blocks ahead of reading.

    The blocks are those in which files are written: numbers of a sample may differ in their last digits with the
    samples that are solved with it, so that only the same blocks give the same file.
    """

    def __init__(self, client: Any, array: Array, progress: Progress | None = None) -> None:
        self.client, self.array, self.progress = client, array, progress
        self.shape, self.dtype = array.shape, array.dtype
        self.ahead = BLOCKS_AHEAD * max(1, len(client.scheduler_info()["workers"]))
        self.futures: dict[int, Any] = {}

    def __getitem__(self, key: Any, /) -> npt.NDArray[Any]:
        """A block of samples, while the next ones are asked for; any other part is solved for here."""
        size, total = samples_per_block(self.array), self.shape[0]
        if not isinstance(key, slice) or key.start not in range(0, total, size) or key.stop != key.start + size:
            return np.asarray(self.array[key])
        for first in range(key.start, total, size)[: self.ahead]:
            if first not in self.futures:
                samples = slice(first, first + size)
                self.futures[first] = self.client.submit(_solved, self.array, samples, pure=False)
        try:
            block: npt.NDArray[Any] = self.futures.pop(key.start).result()
        except SpectraKANError:
            raise
        except Exception as problem:
            raise RunError(f"the cluster could not solve for samples: {type(problem).__name__}: {problem}") from None
        if self.progress is not None:
            self.progress(min(key.stop, total), total)
        return block

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.concatenate([block for _, block in blocks(self)], dtype=dtype)


def _solved(array: Array, samples: slice) -> npt.NDArray[Any]:
    """What a worker does: solve for some samples, with one thread, because each worker has a core."""
    import torch

    torch.set_num_threads(1)
    return np.asarray(array[samples])
