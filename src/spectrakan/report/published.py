"""The numbers of the paper's tables, as data of the package."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Published:
    """One number of the paper; `detail` is a field, a resolution or empty."""

    table: str
    task: str
    metric: str
    detail: str
    method: str
    value: float


@cache
def published() -> tuple[Published, ...]:
    """Every number of the paper's tables."""
    source = resources.files("spectrakan.report") / "published.csv"
    rows = csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    return tuple(Published(value=float(row.pop("value")), **row) for row in rows)


def paper_cell(table: str, task: str, metric: str, detail: str = "") -> dict[str, float]:
    """The paper's values of one column, by method.

    >>> paper_cell("main", "darcy2d", "rmse")["unet"]
    0.01315
    """
    return {
        entry.method: entry.value
        for entry in published()
        if (entry.table, entry.task, entry.metric, entry.detail) == (table, task, metric, detail)
    }


def paper_score(task: str, metric: str, model: str) -> float | None:
    """The paper's value of a whole-task metric, from the main table or the appendix; None where it gives none."""
    return (paper_cell("appendix", task, metric) | paper_cell("main", task, metric)).get(model)
