"""Finished cells on disk: the places of records, failures, weights, data and the ledger."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.cells import Cell, comparable, record_key, run_settings
from spectrakan.config import as_mapping
from spectrakan.runs import RunFolder, read_record, write_record
from spectrakan.storage import write_text_atomically
from spectrakan.training import RunSettings


class Ledger:
    """When test samples were made, and every time they were read: one JSON line an event, never rewritten."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: str, **entries: Any) -> None:
        """Add a line in one write, so that processes side by side do not mix theirs."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"event": event, "time": _now(), **entries})
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, (line + "\n").encode())
        finally:
            os.close(handle)

    def read(self) -> list[dict[str, Any]]:
        """All lines, in the order of writing."""
        if not self.path.is_file():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line]


@dataclass(frozen=True)
class Archive:
    """The records of one scale under `results/<scale>/`, and its cache of data and weights, which can be remade.

    Reading records needs nothing of the scale but its name: records of settings that no longer exist stay readable.
    """

    results: Path
    cache: Path
    scale: str

    @property
    def folder(self) -> Path:
        """Where the records of the scale lie, a folder for each table."""
        return self.results / self.scale

    @property
    def ledger(self) -> Ledger:
        """The uses of the test sets, kept beside the records."""
        return Ledger(self.folder / "ledger.jsonl")

    def run_folder(self, cell: Cell, config: RunSettings) -> RunFolder:
        """Where a cell is trained and its weights are kept; another config has another folder."""
        return self._folder_of(cell, comparable(as_mapping(config)))

    def kept_run(self, record: dict[str, Any]) -> RunFolder:
        """Where the weights behind a record lie, if the cache still has them."""
        details = record["details"]
        model = (record["model"], record["variant"], record["seed"])
        cell = Cell(record["table"], record["scale"], details["case"], *model, label=details["label"])
        return self._folder_of(cell, record["config"])

    def _folder_of(self, cell: Cell, config: dict[str, Any]) -> RunFolder:
        return RunFolder(self.cache / "runs" / cell.scale / cell.table / f"{cell.name}-{record_key(config)}")

    def record(self, cell: Cell) -> dict[str, Any] | None:
        """The record of a cell, if it is finished."""
        path = self.results / cell.file
        return read_record(path) if path.is_file() else None

    def records(self, table: str) -> list[dict[str, Any]]:
        """All records of a table, by the names of their files."""
        return [read_record(path) for path in sorted((self.folder / table).glob("*.json"))]

    def keep(self, cell: Cell, record: dict[str, Any]) -> None:
        """Write a record; an earlier failure of the cell is removed."""
        path = self.results / cell.file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, record)
        self._failure(cell).unlink(missing_ok=True)

    def keep_failure(self, cell: Cell, problem: str) -> None:
        """Write down that a cell failed, and why; the next campaign runs it again."""
        path = self._failure(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"cell": cell.to_json(), "problem": problem, "time": _now()}, indent=2)
        write_text_atomically(path, text)

    def failure(self, cell: Cell) -> str | None:
        """Why a cell failed, if it did."""
        path = self._failure(cell)
        return str(json.loads(path.read_text())["problem"]) if path.is_file() else None

    def changed(self, cell: Cell) -> list[str]:
        """Settings in which the record of a cell differs from what the cell would be trained with now."""
        record = self.record(cell)
        return [] if record is None else _differences(record["config"], comparable(as_mapping(run_settings(cell))))

    def _failure(self, cell: Cell) -> Path:
        return self.cache / "failures" / cell.scale / cell.table / f"{cell.name}.json"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _differences(old: dict[str, Any], new: dict[str, Any], where: str = "") -> list[str]:
    """Dotted names of the values that differ."""
    found = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            found += _differences(before, after, f"{where}{key}.")
        elif before != after:
            found.append(f"{where}{key}")
    return found
