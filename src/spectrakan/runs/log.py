"""The log of a run: one JSON object a line, each with `event`, `epoch` and `step`."""

import json
import math
import os
from pathlib import Path
from typing import Any, TextIO

from spectrakan.config import read_regular
from spectrakan.errors import RunError
from spectrakan.storage import write_text_atomically

LOG_BYTES = 2**28
"""Largest log that is read: a million lines."""


class RunLog:
    """Append lines to a log; a killed process leaves at most one unfinished line, which readers skip.

    A checkpoint holds what `mark` returns. On resume `cut_log` removes the lines after it: they are written again,
    so that the log of a run is the same however often it was killed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = len(read_log(path))
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, event: str, *, epoch: int, step: int, **values: Any) -> None:
        """Add one line; a NaN or infinity, which JSON lacks, becomes text."""
        self._require_present()
        for name, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                values[name] = str(value)
        self._file.write(json.dumps({"event": event, "epoch": epoch, "step": step, **values}) + "\n")
        self._file.flush()
        self.lines += 1

    def mark(self) -> int:
        """Number of lines, all of them safely on disk; call it before a checkpoint is written."""
        self._require_present()
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.lines

    def close(self) -> None:
        """Put the log safely on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _require_present(self) -> None:
        """Refuse to write into a file that has lost its name: nobody would find the lines."""
        try:
            present = os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except OSError:
            present = False
        if not present:
            raise RunError(f"'{self.path.parent}' was deleted or moved while the run was writing to it")


def read_log(path: Path) -> list[dict[str, Any]]:
    """All complete lines of a log; none where there is no file."""
    if not path.is_file():
        return []
    lines = []
    try:
        content = read_regular(path, LOG_BYTES).decode("utf-8", "replace")
    except OSError as problem:
        raise RunError(f"cannot read '{path}': {problem.strerror}; remove what does not belong there") from None
    for text in content.splitlines():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and {"event", "epoch", "step"} <= line.keys():
            lines.append(line)
    return lines


def cut_log(path: Path, lines: int) -> None:
    """Keep the first `lines` complete lines, as a checkpoint counted them."""
    write_text_atomically(path, "".join(json.dumps(line) + "\n" for line in read_log(path)[:lines]))
