"""Learning rates: trials on validation data that bracket the best rate of every model on every case.

A trial has a share of the preset's epochs. The scale's rates are tried first; while the best one is the smallest or
the largest that was tried, its neighbour beyond it follows. The rates that cells are trained with are the preset's
(`spectrakan.training.presets`); what trials find is entered there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from experiments.archive import Archive
from experiments.campaign import Stage
from experiments.cells import Cell, case_settings
from experiments.scales import Scale
from experiments.summaries import row_name
from spectrakan.report.table import Column, Row, Table

TABLE = "rates"
LADDER = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Rates that may be tried beyond the scale's own."""
EXTENSIONS = 4
"""How often a bracket may be extended."""

Tried = dict[float, float]
"""Relative L2 of validation rollouts by learning rate, from small rates to large; infinite where not finite."""


def stages(scale: Scale, competitors: Mapping[str, Sequence[tuple[str, str]]]) -> list[Stage]:
    """The scale's rates for every (model, variant) of every case, then the rates beyond an edge."""
    pairs = [(case, *competitor) for case, given in competitors.items() for competitor in given]

    def first(archive: Archive) -> list[Cell]:
        return [_trial(scale, *pair, rate) for pair in pairs for rate in scale.rates]

    def further(archive: Archive) -> list[Cell]:
        tried = tried_rates(archive)
        rates = [(pair, next_rate(tried.get(pair, {}))) for pair in pairs]
        return [_trial(scale, *pair, rate) for pair, rate in rates if rate is not None]

    return [first, *[further] * EXTENSIONS]


def tried_rates(archive: Archive) -> dict[tuple[str, str, str], Tried]:
    """The trials of each (case, model, variant)."""
    found: dict[tuple[str, str, str], Tried] = {}
    for record in archive.records(TABLE):
        value = record["details"]["validation"]["metrics"].get("relative_l2")
        rate = float(record["config"]["training"]["learning_rate"])
        competitor = (record["details"]["case"], record["model"], record["variant"])
        found.setdefault(competitor, {})[rate] = math.inf if value is None else float(value)
    return {competitor: dict(sorted(tried.items())) for competitor, tried in found.items()}


def best_rate(tried: Tried) -> float | None:
    """The rate with the smallest error; None without trials, or where every one diverged."""
    finite = {rate: error for rate, error in tried.items() if math.isfinite(error)}
    return min(finite, key=lambda rate: finite[rate]) if finite else None


def next_rate(tried: Tried) -> float | None:
    """The rate to try next, because the best one is at an edge of the bracket; None where it is inside.

    >>> next_rate({1e-3: 0.5, 3e-3: 0.2, 1e-2: 0.1}), next_rate({1e-3: 0.5, 3e-3: 0.2, 1e-2: 0.3})
    (0.03, None)
    """
    rates, best = list(tried), best_rate(tried)
    if best is None or best == rates[0]:
        below = [rate for rate in LADDER if rates and rate < rates[0]]
        return below[-1] if below else None
    above = [rate for rate in LADDER if rate > rates[-1]]
    return above[0] if best == rates[-1] and above else None


def tables(archive: Archive) -> list[Table]:
    """The best rate of every model on every case that has trials."""
    tried = tried_rates(archive)
    cases = list(dict.fromkeys(case for case, _, _ in tried))
    names = dict.fromkeys((model, variant) for _, model, variant in tried)
    rows = tuple(
        Row(row_name(*name), tuple(_in_words(tried.get((case, *name), {})) for case in cases)) for name in names
    )
    note = "The best rate of the trials, the rates tried in brackets; * where the best one is at an edge."
    columns = tuple(Column(case, "neither") for case in cases)
    return [Table("Learning rates by validation error", columns, rows, (note,))] if rows else []


def _in_words(tried: Tried) -> str:
    best = best_rate(tried)
    if best is None:
        return "–"
    rates = list(tried)
    return f"{best:g}{'*' if best in (rates[0], rates[-1]) else ''} ({rates[0]:g} to {rates[-1]:g})"


def _trial(scale: Scale, case: str, model: str, variant: str, rate: float) -> Cell:
    epochs = max(1, round(scale.rate_share * case_settings(scale.name, case).training.epochs))
    return Cell(
        table=TABLE,
        scale=scale.name,
        case=case,
        model=model,
        variant=variant,
        overrides=(f"training.learning_rate={rate}", f"training.epochs={epochs}"),
        label=f"lr{rate:g}",
        test=False,
    )
