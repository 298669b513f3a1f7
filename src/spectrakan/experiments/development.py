"""Trained models on samples that are none of training, validation or test: where to look while developing.

Fifty validation samples do not tell how often a rare one goes wrong, and the test is read once. These samples have a
seed of their own and may be read as often as anybody likes; what is decided on them counts as decided on validation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from spectrakan.evaluation.evaluate import evaluate
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.datasets import Datasets
from spectrakan.experiments.main import TABLE, main_cases
from spectrakan.experiments.scales import DEVELOPMENT_SEED, scale_named
from spectrakan.experiments.search import TABLE as TRIALS
from spectrakan.models import from_pretrained
from spectrakan.storage import write_text_atomically

FILE = "development.json"

Scores = dict[str, dict[str, Any]]
"""Facts of the samples and scores of runs, by case."""


def measure_development(
    archive: Archive,
    *,
    cases: Sequence[str] = (),
    models: Sequence[str] = (),
    label: str = "",
    tell: Callable[[str], None] = print,
) -> Scores:
    """Score the weights of the main table, or of the trials with a label, as far as the cache has them; keep all."""
    scale = scale_named(archive.scale)
    datasets = Datasets(scale, archive.cache, archive.ledger)
    path = archive.folder / FILE
    found: Scores = json.loads(path.read_text()) if path.is_file() else {}
    for case in cases or main_cases(scale):
        data = datasets.development(case)
        if data is None:
            continue
        known = found.setdefault(case, {"seed": DEVELOPMENT_SEED, "samples": data.num_samples, "runs": {}})
        for record in archive.records(TRIALS if label else TABLE):
            if (record["details"]["case"], record["details"]["label"]) != (case, label):
                continue
            folder = archive.kept_run(record)
            if (models and record["model"] not in models) or not folder.best.is_dir():
                continue
            name = "-".join(filter(None, [record["model"], record["variant"], f"s{record['seed']}", label]))
            horizon = record["details"]["validation"]["horizon"]
            scores = evaluate(from_pretrained(folder.best), data, horizon=horizon)
            known["runs"][name] = scores["metrics"]
            tell(f"{case} {name}: development rmse {scores['metrics']['rmse']:.4g}")
            write_text_atomically(path, json.dumps(found, indent=2, sort_keys=True) + "\n")
    return found
