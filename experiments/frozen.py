"""What a freeze covers, and the check before test samples are read.

A freeze is `results/freeze.json` (`experiments/freeze`): a commit, and for every cell a hash of its settings and a
fingerprint of what its code computes (`experiments/fingerprint`). Tables may be frozen one after the other. Code that
was rewritten after the freeze, to be faster or shorter, may go on if the fingerprints stay: the models are the same.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from experiments.archive import Archive
from experiments.cells import Cell, comparable, run_settings
from experiments.fingerprint import agree, fingerprint
from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError

FILE = "freeze.json"
SCALES = ("short", "long")
"""Scales whose test samples are read under a freeze."""
FROZEN_CODE = (
    *(f"src/spectrakan/{part}" for part in ("models", "nn", "numerics", "training", "data", "pde")),
    # Presets give settings alone, and those of every frozen cell are hashed.
    ":!src/spectrakan/training/presets.py",
)
ROOT = Path(__file__).resolve().parents[1]


def settings_hash(cell: Cell) -> str:
    """SHA-256 of a cell's settings, whatever its seed and the file of its samples."""
    config = comparable(as_mapping(run_settings(cell)))
    config["runtime"] = {**config["runtime"], "seed": None}
    # A part of a model that is off counts as absent, so that one that comes later leaves the others' hashes alone.
    config["model"] = {key: value for key, value in config["model"].items() if value is not None}
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def require_frozen(cell: Cell, archive: Archive) -> None:
    """Refuse to read test samples for a cell that the freeze does not cover; other scales need none."""
    if cell.scale not in SCALES:
        return
    document = read_freeze(archive)
    if document is None:
        raise ConfigError("there is no freeze: test samples are read after `python -m experiments freeze`")
    entry = document["cells"].get(key_of(cell))
    if entry is None or entry["settings"] != settings_hash(cell):
        reason = "is not part of the freeze" if entry is None else "has other settings than were frozen"
        raise ConfigError(f"{key_of(cell)} {reason}; its test samples stay unread")
    require_unchanged(document, [key_of(cell)])


def read_freeze(archive: Archive) -> dict[str, Any] | None:
    """The freeze beside the records, if there is one."""
    path = archive.results / FILE
    document: dict[str, Any] | None = json.loads(path.read_text()) if path.is_file() else None
    return document


def require_unchanged(document: dict[str, Any], keys: Iterable[str]) -> None:
    """Refuse to go on unless the code is that of the freeze, or computes the same for each of the frozen cells."""
    commit = document["commit"]
    if not descends(commit):
        raise ConfigError(f"the history does not contain the freeze at {commit[:12]}; its test samples stay unread")
    if not git("diff", "--name-only", commit, "--", *FROZEN_CODE):
        return
    for key in keys:
        entry = document["cells"][key]
        # Of the frozen cell and its seed: other seeds start from other weights.
        if not agree(fingerprint(Cell.from_json(entry["cell"])), entry["fingerprint"]):
            raise ConfigError(
                f"{key} computes something else than at the freeze at {commit[:12]}: models, layers, data or "
                "equations changed; draw new test samples"
            )


def descends(commit: str) -> bool:
    """Whether the present commit is the given one or comes after it."""
    command = ["git", "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def key_of(cell: Cell) -> str:
    """Name of a cell in the freeze, the same for all seeds."""
    return "/".join(filter(None, [cell.scale, cell.table, cell.case, cell.model, cell.variant, cell.label]))


def git(*arguments: str) -> str:
    """What a git command prints, in the repository of this file."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"a freeze needs the repository's history: git {arguments[0]} says {done.stderr.strip()}")
    return done.stdout.strip()
