"""The record of a finished run: one JSON document from which tables are made and the run is repeated."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from spectrakan.errors import DataFormatError
from spectrakan.storage import read_json, write_text_atomically

RECORD_KEYS = (
    "table", "task", "model", "variant", "scale", "seed", "resolution", "num_samples", "horizon", "metrics",
    "metrics_per_field", "parameters", "train_seconds", "peak_memory_mb", "config", "provenance",
)  # fmt: skip
"""What every record has, in this order."""
DETAILS = "details"
"""What a record may have besides: scores that only some experiments have."""


def make_record(**entries: Any) -> dict[str, Any]:
    """A record with every key present; what is not given or not finite is None. An unknown key is a mistake."""
    if foreign := sorted(entries.keys() - {*RECORD_KEYS, DETAILS}):
        raise DataFormatError(f"a record has no key {', '.join(foreign)}; known: {', '.join(RECORD_KEYS)}")
    record = {key: _plain(entries.get(key)) for key in RECORD_KEYS}
    return record | ({DETAILS: _plain(entries[DETAILS])} if DETAILS in entries else {})


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record in one step."""
    write_text_atomically(path, json.dumps(record, indent=2, allow_nan=False) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """Read a record, or say what is wrong with it."""
    return _read(path, RECORD_KEYS, "not the record of a run")


def read_scored(path: Path) -> dict[str, Any]:
    """Read a record, or an evaluation that has the scores, the model and the data of one."""
    return _read(path, ("task", "model", "metrics", "provenance"), "neither a record nor an evaluation")


def _read(path: Path, needed: tuple[str, ...], otherwise: str) -> dict[str, Any]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise DataFormatError(f"'{path}' is {otherwise}: expected a JSON object, got {type(document).__name__}")
    if missing := [key for key in needed if key not in document]:
        raise DataFormatError(f"'{path}' is {otherwise}: missing {', '.join(missing)}")
    return document


def as_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of plain values: tensors and arrays as lists, NaN and infinity, which JSON lacks, as None.

    >>> as_json({"errors": np.array([0.5, np.inf]), "count": 2})
    {'errors': [0.5, None], 'count': 2}
    """
    return {str(key): _plain(value) for key, value in document.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return as_json(value)
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
