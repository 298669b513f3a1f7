"""The freeze before the first test cell: from then on neither model nor settings change.

`python -m experiments freeze [TABLE ...]` writes `results/freeze.json`: the present commit, and for every competitor
on every case of the tables at `short` and `long` a hash of its settings and a fingerprint of what it computes. It
refuses while a learning rate is not the best of a bracket, or while SpectraKAN has had more development trials on a
case than F-FNO. The file is committed. Test samples of these scales are then read only by cells whose settings have
the frozen hash and whose code is the frozen one or computes the same. Further tables are added to the same freeze.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.archive import Archive
from experiments.cells import Cell, run_settings
from experiments.fingerprint import fingerprint
from experiments.frozen import FILE, FROZEN_CODE, git, key_of, read_freeze, require_unchanged, settings_hash
from experiments.learning_rates import Tried, best_rate, next_rate, tried_rates
from experiments.out_of_the_box import TABLE as UNTUNED
from experiments.scales import TRIVIAL
from experiments.trials import trial_counts
from spectrakan.errors import ConfigError
from spectrakan.storage import write_text_atomically

RIVAL = "ffno"
"""The baseline that has at least as many development trials as SpectraKAN."""


def freeze(archive: Archive, cells: Sequence[Cell], tell: Callable[[str], None] = lambda text: None) -> Path:
    """Write the freeze of the cells, or add them to the one that is there, after checking what must be settled."""
    cases = dict.fromkeys(cell.case for cell in cells)
    if reasons := [*open_rates(archive, cells), *unfair_cases(archive, list(cases))]:
        raise ConfigError("not ready to freeze:\n" + "\n".join(f"- {reason}" for reason in reasons))
    if git("status", "--porcelain", "--untracked-files=no", "--", *FROZEN_CODE):
        raise ConfigError(f"commit the changes in {', '.join(FROZEN_CODE)} before freezing them")
    path = archive.results / FILE
    document = read_freeze(archive) or {"commit": git("rev-parse", "HEAD"), "cells": {}}
    before = document["cells"]
    require_unchanged(document, before)
    for key, cell in {key_of(cell): cell for cell in cells}.items():
        if key not in before:
            numbers = [float(f"{number:.6g}") for number in fingerprint(cell)]
            before[key] = {"cell": cell.to_json(), "settings": settings_hash(cell), "fingerprint": numbers}
            write_text_atomically(path, json.dumps(document, indent=1, sort_keys=True) + "\n")
            tell(f"{key}: frozen")
        elif before[key]["settings"] != settings_hash(cell):
            raise ConfigError(f"{key} was frozen with other settings, which cannot change any more")
    return path


def open_rates(archive: Archive, cells: Sequence[Cell]) -> list[str]:
    """Competitors whose learning rate is not the best of trials that bracket it, where one is chosen."""
    tried = tried_rates(archive)
    chosen = [cell for cell in cells if not (cell.overrides or cell.table == UNTUNED or cell.model in TRIVIAL)]
    wanted = {(cell.case, cell.model, cell.variant): cell for cell in chosen}
    found = {key: _open(cell, tried.get(key, {})) for key, cell in wanted.items()}
    return [f"{case}, {model} ({variant}): {reason}" for (case, model, variant), reason in found.items() if reason]


def _open(cell: Cell, tried: Tried) -> str:
    """What is open about a cell's learning rate, in words; empty if nothing is."""
    if not tried:
        return "rate not tried"
    if next_rate(tried) is not None:
        return "rate at an edge"
    rate, best = run_settings(cell).training.learning_rate, best_rate(tried)
    return "" if rate == best else f"its rate is {rate:g}, the best of the trials {best:g}"


def unfair_cases(archive: Archive, cases: Sequence[str]) -> list[str]:
    """Those of the cases on which SpectraKAN had more development trials than its rival."""
    counts = trial_counts(archive)
    return [
        f"{case}: {ours} development trials of spectrakan, {theirs} of {RIVAL}"
        for case in cases
        if (ours := counts.get((case, "spectrakan"), 0)) > (theirs := counts.get((case, RIVAL), 0))
    ]
