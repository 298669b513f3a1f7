"""The freeze before the first test cell: from then on neither model nor presets change.

`python -m experiments freeze` writes `results/freeze.json`: the present commit and a hash of the settings of every
competitor on every case at `short` and `long`. It refuses while learning rates are not bracketed, or while SpectraKAN
has had more development trials on a case than F-FNO. The file is committed. Test samples of these scales are then
read only by cells whose settings have the frozen hash and whose code has the frozen models, layers and presets.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from experiments.archive import Archive
from experiments.cells import Cell
from experiments.frozen import FILE, FROZEN_CODE, git, key_of, settings_hash
from experiments.learning_rates import next_rate, tried_rates
from experiments.out_of_the_box import TABLE as UNTUNED
from experiments.scales import TRIVIAL
from experiments.trials import trial_counts
from spectrakan.errors import ConfigError
from spectrakan.storage import write_text_atomically

RIVAL = "ffno"
"""The baseline that has at least as many development trials as SpectraKAN."""


def freeze(archive: Archive, cells: Sequence[Cell]) -> Path:
    """Write the freeze of the cells, after checking what must be settled before it."""
    if reasons := [*open_rates(archive, cells), *unfair_cases(archive)]:
        raise ConfigError("not ready to freeze:\n" + "\n".join(f"- {reason}" for reason in reasons))
    if git("status", "--porcelain", "--untracked-files=no", "--", *FROZEN_CODE):
        raise ConfigError(f"commit the changes in {', '.join(FROZEN_CODE)} before freezing them")
    document = {"commit": git("rev-parse", "HEAD"), "settings": {key_of(cell): settings_hash(cell) for cell in cells}}
    path = archive.results / FILE
    write_text_atomically(path, json.dumps(document, indent=1, sort_keys=True) + "\n")
    return path


def open_rates(archive: Archive, cells: Sequence[Cell]) -> list[str]:
    """Competitors whose best learning rate is untried or at the edge, where one is chosen."""
    tried = tried_rates(archive)
    chosen = [cell for cell in cells if not (cell.overrides or cell.table == UNTUNED or cell.model in TRIVIAL)]
    wanted = dict.fromkeys((cell.case, cell.model, cell.variant) for cell in chosen)
    return [
        f"{case}, {model} ({variant}): rate {'not tried' if not found else 'at an edge'}"
        for case, model, variant in wanted
        if not (found := tried.get((case, model, variant), {})) or next_rate(found) is not None
    ]


def unfair_cases(archive: Archive) -> list[str]:
    """Cases on which SpectraKAN had more development trials than its rival."""
    counts = trial_counts(archive)
    return [
        f"{case}: {ours} development trials of spectrakan, {theirs} of {RIVAL}"
        for case in dict.fromkeys(case for case, _ in counts)
        if (ours := counts.get((case, "spectrakan"), 0)) > (theirs := counts.get((case, RIVAL), 0))
    ]
