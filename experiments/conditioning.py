"""What conditioning is worth on development samples: trials of the default model beside unconditioned ones.

`python -m experiments conditioning` prints the table from the records in `results/<scale>/search/`. These are trials,
not results of a protocol: seeds are few, learning rates are the presets', and no test sample is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.archive import Archive
from experiments.comparison import LEAST_SEEDS, Comparison, compare
from experiments.trials import TABLE
from spectrakan.report.table import Column, Row, Table

CONDITIONED = ("spectrakan", "default", "conditioned")
UNCONDITIONED: dict[tuple[str, str, str], str] = {
    ("spectrakan", "default", "no_token"): "no token",
    ("ffno", "default", "default"): "F-FNO",
}
SUMMARISED: dict[tuple[str, str, str], str] = {
    ("ffno_channels", "default", "ffno_channels"): "F-FNO, summary as channels",
    ("ffno_film", "default", "ffno_film"): "F-FNO, FiLM by the summary",
}
"""Trials by model, variant and label."""
CASE_ORDER = ("burgers1d", "droplet2d", "cns1d", "advection_diffusion1d")

Errors = dict[tuple[str, str, str], list[float]]
"""Development RMSE of the seeds of each trial."""


@dataclass(frozen=True)
class Finding:
    """One case: errors of the trials, and the comparison with the best unconditioned model if seeds allow one."""

    case: str
    errors: Errors
    best: tuple[str, str, str] | None
    compared: Comparison | None

    @property
    def ratio(self) -> float | None:
        """Mean error of the conditioned model over that of the best unconditioned one."""
        if self.best is None or CONDITIONED not in self.errors:
            return None
        return _mean(self.errors[CONDITIONED]) / _mean(self.errors[self.best])


def findings(archive: Archive, what: str = "rmse") -> list[Finding]:
    """All cases with trials of the conditioned model; `what` is a number of the development scores."""
    by_case: dict[str, Errors] = {}
    for record in archive.records(TABLE):
        details = record["details"]
        value = details.get("development", {}).get(what)
        if value is not None:
            key = (record["model"], record["variant"], details["label"])
            by_case.setdefault(details["case"], {}).setdefault(key, []).append(float(value))
    cases = sorted((case for case in by_case if CONDITIONED in by_case[case]), key=_position)
    best = {case: _best(by_case[case]) for case in cases}
    pairs = {
        case: (by_case[case][CONDITIONED], by_case[case][rival])
        for case, rival in best.items()
        if rival is not None and min(len(by_case[case][key]) for key in (CONDITIONED, rival)) >= LEAST_SEEDS
    }
    compared = compare(pairs)
    return [Finding(case, by_case[case], best[case], compared.get(case)) for case in cases]


def table(archive: Archive) -> Table:
    """RMSE on development samples, means over seeds, and the ratio to the best unconditioned model."""
    names = {CONDITIONED: "SpectraKAN", **UNCONDITIONED, **SUMMARISED}
    rows = tuple(
        Row(each.case, (*(_words(each.errors.get(key, [])) for key in names), *_verdict(each)), ranked=False)
        for each in findings(archive)
    )
    columns = tuple(Column(name, "neither") for name in (*names.values(), "ratio", "verdict"))
    note = "Means over seeds, their number in brackets; the ratio is to the better of no token and F-FNO."
    return Table("What conditioning is worth on development samples: RMSE", columns, rows, (note,), corner="case")


def _best(errors: Mapping[tuple[str, str, str], Any]) -> tuple[str, str, str] | None:
    known = [key for key in UNCONDITIONED if key in errors]
    return min(known, key=lambda key: _mean(errors[key])) if known else None


def _verdict(found: Finding) -> tuple[str, str]:
    ratio = "–" if found.ratio is None else f"{found.ratio:.2f}"
    if found.compared is None:
        return ratio, "one seed"
    p = found.compared.corrected
    return ratio, f"{found.compared.verdict}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}"


def _words(values: list[float]) -> str:
    return "–" if not values else f"{_mean(values):.3g} ({len(values)})"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _position(case: str) -> tuple[int, str]:
    name = case.removesuffix("_given").removesuffix("_hidden")
    return (CASE_ORDER.index(name) if name in CASE_ORDER else len(CASE_ORDER), case)
