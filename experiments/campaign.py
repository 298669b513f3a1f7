"""Run the cells that are missing, several side by side; whatever stops it, finished cells stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import Any

from experiments.archive import Archive
from experiments.cells import Cell
from experiments.datasets import Datasets
from experiments.worker import DONE, TAKEN, attempt, data_request, request
from spectrakan.training.session import listening

Tell = Callable[[str], None]
Stage = Callable[[Archive], list[Cell]]
"""Cells that may depend on records of earlier stages: further learning rates, seeds of the strongest baselines."""
Ended = Callable[[int, int, float], None]
"""Called for each process that ended, with its number among the requests, its exit code and its seconds."""

WORKER = "experiments.worker"
POLL_SECONDS = 0.1
WAIT_SECONDS = 60
"""How long a cell is waited for that the process of a lost worker still holds: until its checkpoint is written."""
LOST = -1
"""In place of an exit code: every worker that ran the cell was lost."""


@dataclass(frozen=True)
class Execution:
    """How cells are run."""

    jobs: int = 1
    """Processes side by side; 0 runs cells in this process."""
    refresh: bool = False
    """Whether cells whose record was made with other settings are run again."""
    train_only: bool = False
    """Whether cells that have a test are only trained; a later run scores them."""
    tell: Tell = lambda text: None
    """Called with a line for each cell."""
    client: Any = None
    """A client of a Dask cluster, whose workers run the cells instead of processes of this machine."""

    def carry_out(self, requests: Sequence[str], ended: Ended) -> None:
        """Have each request done by a process of its own, and say of each when it ended."""
        if self.client is None:
            run_side_by_side(WORKER, requests, self.jobs, ended)
            return
        for index, result in as_they_end(self.client, run_request, requests):
            code, seconds = (LOST, 0.0) if isinstance(result, BaseException) else result
            ended(index, code, seconds)


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


@dataclass
class Outcome:
    """What came of some cells, by name."""

    done: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """Finished before with other settings than now, and left as they are."""
    failed: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Add what came of further cells."""
        for name in vars(self):
            getattr(self, name).extend(getattr(other, name))

    @property
    def empty(self) -> bool:
        """Whether there was no cell at all."""
        return not any(vars(self).values())

    def __str__(self) -> str:
        return ", ".join(f"{len(names)} {name}" for name, names in vars(self).items() if names) or "nothing to do"


def run_stages(stages: Sequence[Stage], archive: Archive, how: Execution) -> Outcome:
    """Run stage after stage; the cells of each are known when those before it are finished."""
    outcome = Outcome()
    for stage in stages:
        outcome.add(run_cells(stage(archive), archive, how))
    return outcome


def run_cells(cells: Sequence[Cell], archive: Archive, how: Execution) -> Outcome:
    """Run the cells that have no record yet."""
    outcome, missing = sort_out(cells, archive, how.refresh)
    for name in outcome.changed:
        how.tell(f"{name}: its record was made with other settings; --refresh runs it again")
    number = count(1)

    def ended(index: int, code: int, seconds: float) -> None:
        name = f"[{next(number)}/{len(missing)}] {missing[index].table} {missing[index].name}"
        how.tell(f"{name}: {_note(outcome, missing[index], code, archive)}, {seconds:.0f} s")

    if how.jobs == 0 and how.client is None:
        for index, cell in enumerate(missing):
            begin = time.monotonic()
            code = attempt(cell, archive, train_only=how.train_only and cell.test)
            ended(index, code, time.monotonic() - begin)
        return outcome
    with listening():
        _make_samples(missing, archive, how)
        requests = [request(cell, archive, train_only=how.train_only and cell.test) for cell in missing]
        how.carry_out(requests, ended)
    return outcome


def sort_out(cells: Sequence[Cell], archive: Archive, refresh: bool = False) -> tuple[Outcome, list[Cell]]:
    """Which cells are finished, which were finished with other settings, and which are to be run."""
    outcome, missing = Outcome(), []
    for cell in dict.fromkeys(cells):
        if archive.record(cell) is None:
            missing.append(cell)
        elif not archive.changed(cell):
            outcome.found.append(cell.name)
        elif refresh:
            missing.append(cell)
        else:
            outcome.changed.append(cell.name)
    return outcome, missing


def _make_samples(missing: Sequence[Cell], archive: Archive, how: Execution) -> None:
    """Samples first, in processes of their own, so that the memory of a cell is that of its training."""
    datasets = Datasets(archive)
    cells = list({path: cell for cell in missing if (path := datasets.missing_file(cell)) is not None}.values())

    def made(index: int, code: int, seconds: float) -> None:
        result = "made" if code == DONE else f"failed with code {code}"
        how.tell(f"samples of {cells[index].case}: {result}, {seconds:.0f} s")

    how.carry_out([data_request(cell, archive) for cell in cells], made)


def _note(outcome: Outcome, cell: Cell, code: int, archive: Archive) -> str:
    """Sort an ended cell into the outcome; the result in words."""
    if code == DONE:
        outcome.done.append(cell.name)
        record = archive.record(cell)
        return "trained" if record is None else _scores(record)
    if code == TAKEN:
        outcome.taken.append(cell.name)
        return "another process runs it"
    if archive.failure(cell) is None:
        lost = "the cluster lost each worker that ran it"
        archive.keep_failure(cell, lost if code == LOST else f"its process ended with code {code}")
    outcome.failed.append(cell.name)
    return f"failed, {archive.failure(cell)}"


def _scores(record: dict[str, Any]) -> str:
    validation = record["details"]["validation"]["metrics"]
    shown = [f"{name} {validation[name]:.4g}" for name in ("relative_l2", "rmse") if validation.get(name) is not None]
    tested = record["metrics"].get("rmse")
    ending = "" if tested is None else f"; test rmse {tested:.4g}"
    return f"validation {', '.join(shown) or 'not finite'}{ending}, {record['train_seconds']:.0f} s of CPU"


def run_side_by_side(module: str, requests: Sequence[str], jobs: int, ended: Ended) -> None:
    """Start `python -m module REQUEST` for each request, at most `jobs` at a time, in their order."""
    waiting = deque(enumerate(requests))
    running: dict[subprocess.Popen[bytes], tuple[int, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                index, text = waiting.popleft()
                running[_start(module, text)] = (index, time.monotonic())
            finished = [process for process in running if process.poll() is not None]
            for process in finished:
                index, begin = running.pop(process)
                ended(index, process.returncode, time.monotonic() - begin)
            if not finished:
                time.sleep(POLL_SECONDS)
    finally:
        # Whatever ended the loop, each process writes a checkpoint and ends; the next campaign continues from it.
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def run_request(text: str) -> tuple[int, float]:
    """What a worker of a cluster does: a request in a process of its own; its exit code and seconds."""
    begin = time.monotonic()
    while (code := _start(WORKER, text).wait()) == TAKEN and time.monotonic() - begin < WAIT_SECONDS:
        time.sleep(1)
    return code, time.monotonic() - begin


def _start(module: str, text: str) -> subprocess.Popen[bytes]:
    """A process of one thread, in a session of its own, so that Ctrl-C reaches the campaign alone."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", module, text]
    return subprocess.Popen(command, env=os.environ | threads, start_new_session=True)
