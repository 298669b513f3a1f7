"""Finished cells on disk: where records, failures, weights and data of a campaign lie."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spectrakan.config import as_mapping
from spectrakan.experiments.cells import Cell, comparable, record_key, run_settings
from spectrakan.experiments.ledger import Ledger
from spectrakan.models.catalog import MODELS
from spectrakan.runs import RunFolder, read_record, write_record
from spectrakan.storage import write_text_atomically
from spectrakan.training import RunSettings


@dataclass(frozen=True)
class Archive:
    """The records of one scale under `results/<scale>/`, and its cache of data and weights, which can be remade."""

    results: Path
    cache: Path
    scale: str

    @property
    def folder(self) -> Path:
        """Where the records of the scale lie, a folder for each table."""
        return self.results / self.scale

    @property
    def ledger(self) -> Ledger:
        """The book of the test sets."""
        return Ledger(self.folder / "ledger.jsonl")

    def run_folder(self, cell: Cell, choices: RunSettings) -> RunFolder:
        """Where a cell is trained and its weights are kept; another config has another folder."""
        return self._folder_of(cell, comparable(as_mapping(choices)))

    def kept_run(self, record: dict[str, Any]) -> RunFolder:
        """Where the weights behind a record lie, if the cache still has them."""
        details = record["details"]
        model = (record["model"], record["variant"], record["seed"])
        cell = Cell(record["table"], record["scale"], details["case"], *model, label=details["label"])
        return self._folder_of(cell, record["config"])

    def _folder_of(self, cell: Cell, config: dict[str, Any]) -> RunFolder:
        """The folder of a config; or, if that has none, one that was trained before some of its settings existed."""
        runs = self.cache / "runs" / cell.scale / cell.table
        own = RunFolder(runs / f"{cell.name}-{record_key(config)}")
        if own.started:
            return own
        others = (RunFolder(path) for path in sorted(runs.glob(f"{cell.name}-????????")))
        same = (other for other in others if other.finished and _same(cell, comparable(other.read_config()), config))
        return next(same, own)

    def record(self, cell: Cell) -> dict[str, Any] | None:
        """The record of a cell, if it is finished."""
        path = self.results / cell.file
        return read_record(path) if path.is_file() else None

    def records(self, table: str) -> list[dict[str, Any]]:
        """All records of a table, by the names of their files."""
        return [read_record(path) for path in sorted((self.folder / table).glob("*.json"))]

    def keep(self, cell: Cell, record: dict[str, Any]) -> None:
        """Write a record; an earlier failure of the cell is forgotten."""
        path = self.results / cell.file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, record)
        self._failure(cell).unlink(missing_ok=True)

    def keep_failure(self, cell: Cell, problem: str) -> None:
        """Write down that a cell failed, and why; the next campaign tries it again."""
        path = self._failure(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        write_text_atomically(path, json.dumps({"cell": cell.to_json(), "problem": problem, "time": now}, indent=2))

    def failure(self, cell: Cell) -> str | None:
        """Why a cell failed, if it did."""
        path = self._failure(cell)
        return str(json.loads(path.read_text())["problem"]) if path.is_file() else None

    def changed(self, cell: Cell) -> list[str]:
        """Settings in which a finished cell differs from what it would be trained with now.

        A model's setting that is younger than the record counts as what it is where nobody asks for anything.
        """
        record = self.record(cell)
        if record is None:
            return []
        before = record["config"]
        now = comparable(as_mapping(run_settings(cell, before["data"]["path"])))
        return _differences(_grown(cell, before), now)

    def _failure(self, cell: Cell) -> Path:
        return self.cache / "failures" / cell.scale / cell.table / f"{cell.name}.json"


def _grown(cell: Cell, config: dict[str, Any]) -> dict[str, Any]:
    """A config with the model's younger settings, as they are where nobody asks for anything."""
    return {**config, "model": {**as_mapping(MODELS[cell.model][1]()), **config["model"]}}


def _same(cell: Cell, before: dict[str, Any], now: dict[str, Any]) -> bool:
    return not _differences(_grown(cell, before), _grown(cell, now))


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
