"""The record of a finished run: one JSON document from which tables are made and the run is repeated."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from spectrakan.errors import DataFormatError
from spectrakan.storage import write_text_atomically

RECORD_KEYS = (
    "table",
    "task",
    "model",
    "variant",
    "scale",
    "seed",
    "resolution",
    "num_samples",
    "horizon",
    "metrics",
    "metrics_per_field",
    "parameters",
    "train_seconds",
    "peak_memory_mb",
    "config",
    "provenance",
)
"""What every record has, in this order."""
DETAILS = "details"
"""What a record may have besides: scores that only some experiments have."""


def make_record(**entries: Any) -> dict[str, Any]:
    """A record with every key present; what is not given or not finite is None. An unknown key is a mistake."""
    if foreign := sorted(entries.keys() - {*RECORD_KEYS, DETAILS}):
        raise DataFormatError(f"a record has no place for {', '.join(foreign)}; known: {', '.join(RECORD_KEYS)}")
    record = {key: _finite(entries.get(key)) for key in RECORD_KEYS}
    return record | ({DETAILS: _finite(entries[DETAILS])} if DETAILS in entries else {})


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record in one step."""
    write_text_atomically(path, json.dumps(record, indent=2, allow_nan=False) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """Read a record, or say what is wrong with it."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise DataFormatError(f"cannot read the record '{path}': {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise DataFormatError(f"'{path}' is not valid JSON: {problem}") from None
    if not isinstance(record, dict) or (missing := [key for key in RECORD_KEYS if key not in record]):
        absent = "everything" if not isinstance(record, dict) else ", ".join(missing)
        raise DataFormatError(f"'{path}' is not the record of a run: missing {absent}")
    return record


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
