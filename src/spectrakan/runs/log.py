"""The log of a run: one JSON object a line, each with `event`, `epoch` and `step`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TextIO

from spectrakan.storage import write_text_atomically


class RunLog:
    """Append lines to a log; a killed process leaves at most one unfinished line, which readers skip."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, event: str, *, epoch: int, step: int, **facts: Any) -> None:
        """Add one line; a NaN or infinity among the facts becomes text, for JSON has none."""
        plain = {name: _plain(value) for name, value in facts.items()}
        self._file.write(json.dumps({"event": event, "epoch": epoch, "step": step, **plain}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Put the log safely on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """All complete lines of a log; none where there is no file."""
    if not path.is_file():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and {"event", "epoch", "step"} <= line.keys():
            lines.append(line)
    return lines


def rewind_log(path: Path, step: int, epoch: int) -> None:
    """Drop what a killed run had logged after the checkpoint at `step` of `epoch` from which it now goes on."""

    def happened(line: dict[str, Any]) -> bool:
        ended = line["event"] == "epoch" and line["epoch"] >= epoch
        return line["step"] <= step and not ended

    kept = [line for line in read_log(path) if happened(line)]
    write_text_atomically(path, "".join(json.dumps(line) + "\n" for line in kept))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    return value
