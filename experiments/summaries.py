"""Records of one model on one case with several seeds, as mean and spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.archive import Archive
from spectrakan.report.table import Score

NAMES = {
    "unet": "U-Net",
    "fno": "FNO",
    "ffno": "FFNO",
    "lno": "LNO",
    "transolver": "Transolver",
    "local_fno": "LocalFNO",
    "deepokan": "DeepOKAN",
    "cvit": "CViT",
    "spectrakan": "SpectraKAN",
    "persistence": "persistence",
    "climatology": "climatology",
    "ridge": "ridge",
}
"""Names of models in tables, in their order."""

Reading = Callable[[dict[str, Any]], float | None]
"""What is read from a record."""


@dataclass(frozen=True)
class Result:
    """All seeds of a model on a case."""

    model: str
    variant: str
    records: tuple[dict[str, Any], ...]

    def score(self, reading: Reading, paper: float | None = None) -> Score:
        """Mean and standard deviation over seeds; one seed has no spread, and a failed seed leaves no mean."""
        values = [reading(record) for record in self.records]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values):
            return Score(None, paper=paper)
        spread = statistics.stdev(known) if len(known) > 1 else None
        return Score(statistics.fmean(known), spread, paper)

    def metric(self, name: str, paper: float | None = None) -> Score:
        """A metric of the whole test set."""
        return self.score(lambda record: record["metrics"].get(name), paper)


class Results:
    """The results of one table, by case, model, variant and label."""

    def __init__(self, records: Sequence[dict[str, Any]]) -> None:
        self._records: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
        for record in records:
            details = record["details"]
            key = (details["case"], record["model"], record["variant"], details["label"])
            self._records.setdefault(key, []).append(record)

    @classmethod
    def of(cls, archive: Archive, table: str) -> Results:
        """The results of a table that are finished."""
        return cls(archive.records(table))

    def find(self, case: str, model: str, variant: str = "default", label: str = "") -> Result | None:
        """A model's result on a case, if there is one."""
        records = self._records.get((case, model, variant, label))
        return None if records is None else Result(model, variant, tuple(records))

    def cases(self) -> list[str]:
        """Cases with at least one result."""
        return list(dict.fromkeys(key[0] for key in self._records))

    def models(self, case: str | None = None) -> list[str]:
        """Models with a result of their default, in the order of `NAMES`."""
        present = {
            model for where, model, variant, _ in self._records if variant == "default" and case in (None, where)
        }
        return [name for name in NAMES if name in present]

    def first(self, case: str) -> dict[str, Any]:
        """The first record of a case."""
        return next(records[0] for key, records in self._records.items() if key[0] == case)

    def variants(self, case: str) -> list[tuple[str, str]]:
        """All (model, variant) with a result on a case."""
        return list(dict.fromkeys(key[1:3] for key in self._records if key[0] == case))

    def labels(self, case: str) -> list[str]:
        """All labels of results on a case."""
        return list(dict.fromkeys(key[3] for key in self._records if key[0] == case))

    def best_of(self, case: str, models: Sequence[str], reading: Reading) -> tuple[str, Score] | None:
        """The model with the smallest mean on a case."""
        scores: dict[str, Score] = {}
        for model in models:
            result = self.find(case, model)
            if result is not None and (score := result.score(reading)).known:
                scores[model] = score
        if not scores:
            return None
        return min(scores.items(), key=lambda item: item[1].value if item[1].value is not None else float("inf"))


def metric_of(name: str) -> Reading:
    """Read a metric of the whole test set."""
    return lambda record: record["metrics"].get(name)


def row_name(model: str, variant: str = "default") -> str:
    """A model's name in a table."""
    name = NAMES.get(model, model)
    return name if variant == "default" else f"{name} ({'paper to the letter' if variant == 'paper' else variant})"


def ratio(ours: Score, other: Score) -> float | None:
    """Our value over another's."""
    return None if not ours.value or not other.value else ours.value / other.value


def beyond_spread(ours: Score, other: Score) -> bool:
    """Whether two means are further apart than their spreads together; a single seed counts as without spread."""
    if ours.value is None or other.value is None:
        return False
    return abs(ours.value - other.value) > math.hypot(ours.spread or 0.0, other.spread or 0.0)
