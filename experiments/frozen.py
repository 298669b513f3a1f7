"""What a freeze covers, and the check before test samples are read.

A freeze is `results/freeze.json` (`experiments/freeze`): a commit, and a hash of the settings of every cell. Tables
may be frozen one after the other, all with the code of the first commit.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from experiments.archive import Archive
from experiments.cells import Cell, comparable, run_settings
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
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def require_frozen(cell: Cell, archive: Archive) -> None:
    """Refuse to read test samples for a cell that the freeze does not cover; other scales need none."""
    if cell.scale not in SCALES:
        return
    document = read_freeze(archive)
    if document is None:
        raise ConfigError("there is no freeze: test samples are read after `python -m experiments freeze`")
    frozen = document["settings"].get(key_of(cell))
    if frozen != settings_hash(cell):
        reason = "is not part of the freeze" if frozen is None else "has other settings than were frozen"
        raise ConfigError(f"{key_of(cell)} {reason}; its test samples stay unread")
    require_unchanged(document["commit"])


def read_freeze(archive: Archive) -> dict[str, Any] | None:
    """The freeze beside the records, if there is one."""
    path = archive.results / FILE
    document: dict[str, Any] | None = json.loads(path.read_text()) if path.is_file() else None
    return document


def require_unchanged(commit: str) -> None:
    """Refuse to go on if the frozen code differs from that of the freeze, or the history does not contain it."""
    if not descends(commit) or git("diff", "--name-only", commit, "--", *FROZEN_CODE):
        raise ConfigError(
            f"models, layers, data or equations changed since the freeze at {commit[:12]}; draw new test samples"
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
