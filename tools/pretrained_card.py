"""The scores of a shipped model and the card that is written from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_scores(folder: Path, facts: dict[str, Any]) -> None:
    """Write NAME.json, keeping the baselines that are there."""
    path = folder.with_suffix(".json")
    kept = json.loads(path.read_text())["baselines"] if path.is_file() else {}
    path.write_text(json.dumps({**facts, "baselines": kept}, indent=1) + "\n")


def write_baseline(folder: Path, kind: str, entry: dict[str, Any]) -> None:
    """Add a baseline's scores and write the card again."""
    path = folder.with_suffix(".json")
    facts = json.loads(path.read_text()) if path.is_file() else {"baselines": {}}
    facts["baselines"][kind] = entry
    path.write_text(json.dumps(facts, indent=1) + "\n")
    if "scores" in facts:
        write_card(folder)


def write_card(folder: Path) -> None:
    """Placeholder until the scores exist."""
