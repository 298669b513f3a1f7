"""Run the cells that are missing, several side by side; whatever stops it, what is finished stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spectrakan.errors import RunError
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell
from spectrakan.experiments.worker import DONE, TAKEN, attempt, request
from spectrakan.training.stop import listening

Tell = Callable[[str], None]
Stage = Callable[[Archive], list[Cell]]
"""Cells that may depend on records of earlier stages: chosen rates, the strongest baselines."""

POLL_SECONDS = 0.1


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
        """Take in what came of further cells."""
        for name in vars(self):
            getattr(self, name).extend(getattr(other, name))

    def __str__(self) -> str:
        return ", ".join(f"{len(names)} {name}" for name, names in vars(self).items() if names) or "nothing to do"


def run_stages(
    stages: Sequence[Stage], archive: Archive, *, jobs: int = 1, refresh: bool = False, tell: Tell = lambda text: None
) -> Outcome:
    """Run stage after stage; the cells of each are known when those before it are finished."""
    outcome = Outcome()
    for stage in stages:
        outcome.add(run_cells(stage(archive), archive, jobs=jobs, refresh=refresh, tell=tell))
    return outcome


def run_cells(
    cells: Sequence[Cell],
    archive: Archive,
    *,
    jobs: int = 1,
    refresh: bool = False,
    tell: Tell = lambda text: None,
) -> Outcome:
    """Run the cells that have no record yet, `jobs` processes side by side; 0 runs them in this process.

    A cell whose record was made with other settings is left and told of, or run again with `refresh`.
    """
    outcome, missing = sort_out(cells, archive, refresh)
    for name in outcome.changed:
        tell(f"{name}: its record was made with other settings; --refresh runs it again")
    if jobs == 0:
        for number, cell in enumerate(missing, start=1):
            begin = time.monotonic()
            _note(outcome, cell, attempt(cell, archive), archive, tell, f"[{number}/{len(missing)}]", begin)
        return outcome
    with listening():
        _side_by_side(missing, archive, jobs, tell, outcome)
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


def _side_by_side(missing: list[Cell], archive: Archive, jobs: int, tell: Tell, outcome: Outcome) -> None:
    waiting, running, number = deque(missing), dict[subprocess.Popen[bytes], tuple[Cell, float]](), 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                cell = waiting.popleft()
                running[_start(cell, archive)] = (cell, time.monotonic())
            ended = [process for process in running if process.poll() is not None]
            for process in ended:
                cell, begin = running.pop(process)
                number += 1
                _note(outcome, cell, process.returncode, archive, tell, f"[{number}/{len(missing)}]", begin)
            if not ended:
                time.sleep(POLL_SECONDS)
    finally:
        # Whatever ended the loop, the processes take a checkpoint and go; the next campaign goes on from there.
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def _start(cell: Cell, archive: Archive) -> subprocess.Popen[bytes]:
    """A process of one thread, in a session of its own, so that Ctrl-C reaches the campaign alone."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "spectrakan.experiments.worker", request(cell, archive)]
    return subprocess.Popen(command, env=os.environ | threads, start_new_session=True)


def _note(outcome: Outcome, cell: Cell, code: int, archive: Archive, tell: Tell, place: str, begin: float) -> None:
    """Sort a finished cell in and tell of it."""
    if code == DONE:
        outcome.done.append(cell.name)
        tell(f"{place} {cell.table} {cell.name}: {_scores(archive.record(cell))}, {time.monotonic() - begin:.0f} s")
    elif code == TAKEN:
        outcome.taken.append(cell.name)
        tell(f"{place} {cell.table} {cell.name}: another process runs it")
    else:
        if archive.failure(cell) is None:
            archive.keep_failure(cell, f"its process ended with code {code}")
        outcome.failed.append(cell.name)
        tell(f"{place} {cell.table} {cell.name}: failed, {archive.failure(cell)}")


def _scores(record: dict[str, Any] | None) -> str:
    if record is None:
        raise RunError("a cell has ended well without a record; its results folder was changed meanwhile")
    validation = record["details"]["validation"]["metrics"]
    told = [f"{name} {validation[name]:.4g}" for name in ("relative_l2", "rmse") if validation.get(name) is not None]
    tested = record["metrics"].get("rmse")
    ending = "" if tested is None else f"; test rmse {tested:.4g}"
    return f"validation {', '.join(told) or 'not finite'}{ending}, {record['train_seconds']:.0f} s of CPU"
