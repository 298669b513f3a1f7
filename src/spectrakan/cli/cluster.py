"""Work on a Dask cluster: processes of this machine (`local:N`), or those of a scheduler (`tcp://HOST:PORT`).

Dask does the scheduling: work of a worker that is lost is done again by another one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from spectrakan.errors import ConfigError, RunError, SpectraKANError
from spectrakan.fields.trajectories import Array, Progress, samples_per_block

SECONDS_TO_JOIN = 60
"""Time that a scheduler and its first worker have to answer."""
BLOCKS_AHEAD = 2
"""Blocks of samples that each worker has to do, so that it need not wait for the file."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the cluster at that address; processes of this machine end with the block."""
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        raise ConfigError("--cluster needs the extra `cluster`: pip install 'spectrakan[cluster]'") from None
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


def as_they_end(client: Any, function: Callable[..., Any], arguments: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Call a function with each argument on the workers; the number and the result of each call, as they end.

    The result of a call that failed is its exception. Calls that have not ended are cancelled with the iterator.
    """
    dask: Any = import_module("distributed")
    futures = client.map(function, arguments, pure=False)
    numbers = {future.key: index for index, future in enumerate(futures)}
    try:
        for future in dask.as_completed(futures):
            yield numbers[future.key], future.exception() or future.result()
    finally:
        client.cancel(futures)


class ClusterArray:
    """An array of samples that workers solve for, `(samples, time, *space, channel)`, some blocks ahead of reading.

    The blocks are those in which files are written: numbers of a sample may differ in their last digits with the
    samples that are solved with it, so that only the same blocks give the same file.
    """

    def __init__(self, client: Any, array: Array, progress: Progress | None = None) -> None:
        self.client, self.array, self.progress = client, array, progress
        self.shape, self.dtype = array.shape, array.dtype
        self.ahead = BLOCKS_AHEAD * max(1, len(client.scheduler_info()["workers"]))
        self.size = samples_per_block(array)
        self.futures: dict[int, Any] = {}
        self.latest: tuple[int, npt.NDArray[Any]] = (-1, np.empty(0))

    def __getitem__(self, key: Any, /) -> npt.NDArray[Any]:
        """Samples by a number or a slice, then the other axes."""
        first, *rest = key if isinstance(key, tuple) else (key,)
        chosen = range(self.shape[0])[first]
        samples = range(chosen, chosen + 1) if isinstance(chosen, int) else chosen
        if not samples or samples.step != 1:
            return np.asarray(self.array[key])
        numbers = range(samples[0] // self.size, samples[-1] // self.size + 1)
        whole = np.concatenate([self._block(number) for number in numbers])
        begin = samples.start - numbers.start * self.size
        part = whole[begin : begin + len(samples)]
        return np.asarray(part[(0 if isinstance(chosen, int) else slice(None), *rest)])

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)

    def _block(self, number: int) -> npt.NDArray[Any]:
        """The samples of a block; the next ones are asked for meanwhile."""
        if self.latest[0] == number:
            return self.latest[1]
        last = -(-self.shape[0] // self.size)
        for wanted in range(number, min(number + self.ahead, last)):
            if wanted not in self.futures:
                stop = min((wanted + 1) * self.size, self.shape[0])
                samples = slice(wanted * self.size, stop)
                self.futures[wanted] = self.client.submit(_solved, self.array, samples, pure=False)
        try:
            self.latest = number, self.futures.pop(number).result()
        except SpectraKANError:
            raise
        except Exception as problem:
            raise RunError(f"the cluster could not solve for samples: {type(problem).__name__}: {problem}") from None
        if self.progress is not None:
            self.progress(min((number + 1) * self.size, self.shape[0]), self.shape[0])
        return self.latest[1]


def _solved(array: Array, samples: slice) -> npt.NDArray[Any]:
    """What a worker does: solve for some samples, with one thread, because each worker has a core."""
    import torch

    torch.set_num_threads(1)
    return np.asarray(array[samples])
