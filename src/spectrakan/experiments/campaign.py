"""Run the cells that are missing, several side by side; whatever stops it, what is finished stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell
from spectrakan.experiments.datasets import Datasets
from spectrakan.experiments.pool import run_side_by_side
from spectrakan.experiments.scales import scale_named
from spectrakan.experiments.worker import DONE, TAKEN, attempt, data_request, request
from spectrakan.training.stop import listening

Tell = Callable[[str], None]
Stage = Callable[[Archive], list[Cell]]
"""Cells that may depend on records of earlier stages: chosen rates, the strongest baselines."""

WORKER = "spectrakan.experiments.worker"


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
    stages: Sequence[Stage],
    archive: Archive,
    *,
    jobs: int = 1,
    refresh: bool = False,
    train_only: bool = False,
    tell: Tell = lambda text: None,
) -> Outcome:
    """Run stage after stage; the cells of each are known when those before it are finished."""
    outcome = Outcome()
    for stage in stages:
        outcome.add(run_cells(stage(archive), archive, jobs=jobs, refresh=refresh, train_only=train_only, tell=tell))
    return outcome


def run_cells(
    cells: Sequence[Cell],
    archive: Archive,
    *,
    jobs: int = 1,
    refresh: bool = False,
    train_only: bool = False,
    tell: Tell = lambda text: None,
) -> Outcome:
    """Run the cells that have no record yet, `jobs` processes side by side; 0 runs them in this process.

    A cell whose record was made with other settings is left and told of, or run again with `refresh`.
    With `train_only` cells that have a test are trained and their weights kept; a run without it scores them.
    """
    outcome, missing = sort_out(cells, archive, refresh)
    for name in outcome.changed:
        tell(f"{name}: its record was made with other settings; --refresh runs it again")
    if jobs == 0:
        for number, cell in enumerate(missing, start=1):
            begin = time.monotonic()
            code = attempt(cell, archive, train_only=train_only and cell.test)
            _note(outcome, cell, code, archive, tell, f"[{number}/{len(missing)}]", time.monotonic() - begin)
        return outcome
    with listening():
        _side_by_side(missing, archive, jobs, train_only, tell, outcome)
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


def _side_by_side(
    missing: list[Cell], archive: Archive, jobs: int, train_only: bool, tell: Tell, outcome: Outcome
) -> None:
    """Samples first, in processes of their own, so that the memory of a cell is that of its training."""
    datasets = Datasets(scale_named(archive.scale), archive.cache, archive.ledger)
    cases = [name for name in dict.fromkeys(cell.case for cell in missing) if datasets.lacks(name)]

    def made(place: int, code: int, seconds: float) -> None:
        tell(f"samples of {cases[place]}: {'made' if code == DONE else f'failed with code {code}'}, {seconds:.0f} s")

    def ended(place: int, code: int, seconds: float) -> None:
        _note(outcome, missing[place], code, archive, tell, f"[{next(number)}/{len(missing)}]", seconds)

    number = count(1)
    requests = [request(cell, archive, train_only=train_only and cell.test) for cell in missing]
    run_side_by_side(WORKER, [data_request(name, archive) for name in cases], jobs, made)
    run_side_by_side(WORKER, requests, jobs, ended)


def _note(outcome: Outcome, cell: Cell, code: int, archive: Archive, tell: Tell, place: str, seconds: float) -> None:
    """Sort a finished cell in and tell of it."""
    if code == DONE:
        outcome.done.append(cell.name)
        record = archive.record(cell)
        scores = "trained" if record is None else _scores(record)
        tell(f"{place} {cell.table} {cell.name}: {scores}, {seconds:.0f} s")
    elif code == TAKEN:
        outcome.taken.append(cell.name)
        tell(f"{place} {cell.table} {cell.name}: another process runs it")
    else:
        if archive.failure(cell) is None:
            archive.keep_failure(cell, f"its process ended with code {code}")
        outcome.failed.append(cell.name)
        tell(f"{place} {cell.table} {cell.name}: failed, {archive.failure(cell)}")


def _scores(record: dict[str, Any]) -> str:
    validation = record["details"]["validation"]["metrics"]
    told = [f"{name} {validation[name]:.4g}" for name in ("relative_l2", "rmse") if validation.get(name) is not None]
    tested = record["metrics"].get("rmse")
    ending = "" if tested is None else f"; test rmse {tested:.4g}"
    return f"validation {', '.join(told) or 'not finite'}{ending}, {record['train_seconds']:.0f} s of CPU"
