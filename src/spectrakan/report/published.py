"""The numbers of the paper, as data of the package, and what they say about its own claims."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

OURS = "spectrakan"
DROPLET_FIELDS = {"rho": "rho", "velocity_x": "u", "velocity_y": "v"}
"""Our names of the droplet's fields -> the paper's."""
APPENDIX_METRICS = ("nrmse", "max_error", "crmse", "brmse", "frmse_low", "frmse_mid", "frmse_high")


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
    return tuple(
        Published(
            table=row["table"],
            task=row["task"],
            metric=row["metric"],
            detail=row["detail"],
            method=row["method"],
            value=float(row["value"]),
        )
        for row in csv.DictReader(source.read_text(encoding="utf-8").splitlines())
    )


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
    for table in ("main", "appendix"):
        value = paper_cell(table, task, metric).get(model)
        if value is not None:
            return value
    return None


def best_baseline(values: dict[str, float]) -> tuple[str, float] | None:
    """The strongest method beside SpectraKAN."""
    others = {method: value for method, value in values.items() if method != OURS}
    return min(others.items(), key=lambda item: item[1]) if others else None


def paper_ratio(values: dict[str, float]) -> float | None:
    """SpectraKAN's value over the best baseline's: below one it wins.

    >>> round(paper_ratio(paper_cell("main", "cns1d", "rmse")), 3)
    0.493
    """
    best = best_baseline(values)
    return None if best is None or OURS not in values else values[OURS] / best[1]


def appendix_wins() -> tuple[int, int]:
    """In how many columns of the appendix SpectraKAN has the paper's smallest value, and of how many.

    >>> appendix_wins()
    (20, 28)
    """
    tasks = sorted({entry.task for entry in published() if entry.table == "appendix"})
    ratios = [paper_ratio(paper_cell("appendix", task, metric)) for task in tasks for metric in APPENDIX_METRICS]
    known = [ratio for ratio in ratios if ratio is not None]
    return sum(ratio < 1 for ratio in known), len(known)


def paper_slips() -> list[str]:
    """Where the paper's words and its own numbers disagree."""
    cns, reaction = (paper_cell("main", task, "rmse") for task in ("cns1d", "diffusion_reaction1d"))
    wins, cells = appendix_wins()
    second = best_baseline(reaction)
    name, value = second if second is not None else ("", 1.0)
    gain = 100 * (1 - cns[OURS] / cns["ffno"])
    flow = (
        f"The abstract and the main table give an improvement of 49 % on 1D flow, the text 50.7 %; "
        f"{cns['ffno']:g} against {cns[OURS]:g} is {gain:.1f} %."
    )
    over = (
        f"On diffusion-reaction the improvement of 42 % is taken over Transolver's {reaction['transolver']:g}, "
        f"while the best baseline of the table is {name} with {value:g}, which makes it "
        f"{100 * (1 - reaction[OURS] / value):.1f} %."
    )
    appendix = f"By its own numbers SpectraKAN wins {wins} of the {cells} columns of the appendix, not all of them."
    return [flow, over, appendix]
