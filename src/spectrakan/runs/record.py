"""The record of a finished run: one JSON document from which tables are made and the run is repeated.

It says where a result comes from (versions, commit and data), and nothing about the machine's name or its user.
"""

import hashlib
import json
import math
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories
from spectrakan.fields.grid_part import joined, whole_of
from spectrakan.storage import read_json, write_text_atomically

RECORD_KEYS = (
    "table", "task", "model", "variant", "scale", "seed", "resolution", "num_samples", "horizon", "metrics",
    "metrics_per_field", "parameters", "train_seconds", "peak_memory_mb", "config", "provenance",
)  # fmt: skip
"""What every record has, in this order."""
SCORED_KEYS = ("task", "model", "metrics", "provenance")
"""What records and evaluations have in common: scores, the model and the data."""
DETAILS = "details"
"""What a record may have besides: scores that only some experiments have."""
PACKAGES = ("spectrakan", "torch", "numpy", "scipy", "h5py")
"""Packages whose versions a record names."""


def make_record(**entries: Any) -> dict[str, Any]:
    """A record with every key present; what is not given or not finite is None. An unknown key is a mistake."""
    if foreign := sorted(entries.keys() - {*RECORD_KEYS, DETAILS}):
        raise DataFormatError(f"a record has no key {', '.join(foreign)}; known: {', '.join(RECORD_KEYS)}")
    record = {key: _plain(entries.get(key)) for key in RECORD_KEYS}
    return record | ({DETAILS: _plain(entries[DETAILS])} if DETAILS in entries else {})


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record in one step."""
    write_text_atomically(path, json.dumps(record, indent=2, allow_nan=False) + "\n")


def read_record(path: Path, needed: Sequence[str] = RECORD_KEYS) -> dict[str, Any]:
    """Read a record, or with `SCORED_KEYS` an evaluation too, or say what is wrong with it."""
    document = read_json(path)
    otherwise = "not the record of a run" if needed is RECORD_KEYS else "neither a record nor an evaluation"
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


def provenance(**entries: Any) -> dict[str, Any]:
    """What is needed beside settings to repeat a run, with further `entries`."""
    return {
        "versions": {"python": platform.python_version(), **{name: package_version(name) for name in PACKAGES}},
        "system": f"{platform.system()} {platform.machine()}",
        "commit": _commit(),
        **entries,
    }


def data_digest(trajectories: Trajectories) -> str:
    """SHA-256 over names, units, constants, grid, times, parameters and every number, a few samples at a time.

    The same set has the same digest in memory and in a file, in every byte order; another type of number makes it
    another set. Processes that hold parts of the fields join them, and all get the digest of the whole.
    """
    grid = whole_of(trajectories.grid)
    names = {
        "problem": trajectories.name,
        "fields": [[spec.name, spec.unit, spec.positive] for spec in trajectories.fields],
        "input_fields": [[spec.name, spec.unit, spec.positive] for spec in trajectories.input_fields],
        "param_names": list(trajectories.param_names),
        "constants": dict(trajectories.constants),
        "boundary": list(grid.boundary),
    }
    digest = hashlib.sha256(json.dumps(names, sort_keys=True).encode())
    small = [trajectories.times, *(axis.numpy() for axis in (*grid.coordinates, *grid.edges, *grid.weights))]
    for numbers in small if trajectories.params is None else [*small, trajectories.params]:
        digest.update(np.ascontiguousarray(numbers, dtype="<f8").data)
    for array in (trajectories.values, trajectories.inputs):
        if array is None:
            continue
        kind = np.dtype(array.dtype).newbyteorder("<")
        digest.update(f"{kind.name} {(*array.shape[:2], *grid.shape, array.shape[-1])}".encode())
        for sample in range(array.shape[0]):
            part = torch.from_numpy(np.ascontiguousarray(array[sample], dtype=kind))
            digest.update(np.ascontiguousarray(joined(part, trajectories.grid, 1).numpy()).data)
    return digest.hexdigest()


def package_version(package: str) -> str:
    """The version of an installed package, or that it is not."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str | None:
    """The commit of the package's own checkout, with a mark if files differ from it; None if installed."""
    here = Path(__file__).resolve()

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=here.parent, capture_output=True, text=True, timeout=5, check=True).stdout

    try:
        git("ls-files", "--error-unmatch", here.name)
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").strip()
    except (OSError, subprocess.SubprocessError):
        return None
