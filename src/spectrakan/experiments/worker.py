"""A process that runs one cell, or makes the samples of one case: `python -m spectrakan.experiments.worker JSON`.

Exit codes: 0 the record is written or the samples are made, 1 the cell failed and its failure is written, 3 another
process has it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell
from spectrakan.experiments.datasets import Datasets
from spectrakan.experiments.scales import scale_named
from spectrakan.experiments.trial import run_cell, train_cell
from spectrakan.training.events import Listener
from spectrakan.training.stop import Stopped

DONE, FAILED, TAKEN = 0, 1, 3


def attempt(cell: Cell, archive: Archive, listeners: Sequence[Listener] = (), *, train_only: bool = False) -> int:
    """Run a cell, or only train it, unless another process does.

    A failure of any kind is written down, so that others go on.
    """
    lock = archive.cache / "locks" / cell.scale / f"{cell.table}-{cell.name}"
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if train_only:
            train_cell(cell, archive, listeners)
        else:
            run_cell(cell, archive, listeners)
    except BlockingIOError:
        return TAKEN
    except Exception as problem:
        archive.keep_failure(cell, f"{type(problem).__name__}: {problem}")
        return FAILED
    finally:
        os.close(handle)
    return DONE


def request(cell: Cell, archive: Archive, *, train_only: bool = False) -> str:
    """The text that tells a worker what to do."""
    return json.dumps({"cell": cell.to_json(), "train_only": train_only, **_places(archive)})


def data_request(case: str, archive: Archive) -> str:
    """The text that has a worker make the training samples of a case."""
    return json.dumps({"case": case, **_places(archive)})


def _places(archive: Archive) -> dict[str, str]:
    return {"results": str(archive.results), "cache": str(archive.cache), "scale": archive.scale}


def main(text: str) -> int:
    """Do what a request says."""
    wanted = json.loads(text)
    archive = Archive(Path(wanted["results"]), Path(wanted["cache"]), wanted["scale"])
    if "case" in wanted:
        Datasets(scale_named(archive.scale), archive.cache, archive.ledger).training_file(wanted["case"])
        return DONE
    try:
        return attempt(Cell.from_json(wanted["cell"]), archive, train_only=wanted.get("train_only", False))
    except Stopped as stop:
        return stop.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
