"""A process that runs one cell, or makes its training samples: `python -m experiments.worker JSON`.

Exit codes: 0 the record is written or the samples are made, 1 the cell failed and its failure is written, 3 another
process runs it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from experiments.archive import Archive
from experiments.cells import Cell
from experiments.datasets import Datasets
from experiments.execution import run_cell, train_cell
from spectrakan.training.session import Stopped

DONE, FAILED, TAKEN = 0, 1, 3


def attempt(cell: Cell, archive: Archive, *, train_only: bool = False) -> int:
    """Run a cell, or only train it, unless another process does.

    A failure of any kind is written down, so that the other cells are still run.
    """
    lock = archive.cache / "locks" / cell.scale / f"{cell.table}-{cell.name}"
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if train_only:
            train_cell(cell, archive)
        else:
            run_cell(cell, archive)
    except BlockingIOError:
        return TAKEN
    except Exception as problem:
        archive.keep_failure(cell, f"{type(problem).__name__}: {problem}")
        return FAILED
    finally:
        os.close(handle)
    return DONE


def request(cell: Cell, archive: Archive, *, train_only: bool = False) -> str:
    """The text that asks a worker for a cell."""
    return _text(cell, archive, "train" if train_only else "run")


def data_request(cell: Cell, archive: Archive) -> str:
    """The text that asks a worker for the training samples of a cell."""
    return _text(cell, archive, "data")


def _text(cell: Cell, archive: Archive, kind: str) -> str:
    places = {
        "results": str(archive.results.absolute()),
        "cache": str(archive.cache.absolute()),
        "scale": archive.scale,
    }
    return json.dumps({"kind": kind, "cell": cell.to_json(), **places})


def main(text: str) -> int:
    """Do what a request says."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    asked = json.loads(text)
    archive = Archive(Path(asked["results"]), Path(asked["cache"]), asked["scale"])
    cell = Cell.from_json(asked["cell"])
    try:
        if asked["kind"] == "data":
            Datasets(archive).training_file(cell)
            return DONE
        return attempt(cell, archive, train_only=asked["kind"] == "train")
    except Stopped as stop:
        return stop.code


def _end_with(parent: int) -> None:
    """Stop, with a checkpoint, when the process that asked is gone: another worker continues the cell."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
