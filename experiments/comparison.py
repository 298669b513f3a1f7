"""Whether one model is better than another, from the errors of several seeds.

Errors differ by factors, so tests are on their logarithms: Welch's t-test, which allows the two models different
spreads, with Holm's correction over the problems of a table. Verdicts:

wins        the ratio of errors is below 1 and the corrected p is at most 0.05
loses       the ratio is above 1 and the corrected p is at most 0.05
not worse   neither, and the upper 95 % bound of the ratio is at most 1.05
open        none of these: more seeds are needed
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from spectrakan.errors import ConfigError

Verdict = Literal["wins", "loses", "not worse", "open"]
LEVEL = 0.05
"""Largest corrected p of a win, and one minus the confidence of the upper bound."""
MARGIN = 1.05
"""Largest upper bound of the ratio of errors that counts as not worse."""
LEAST_SEEDS = 2


@dataclass(frozen=True)
class Comparison:
    """Errors of one model over those of another, geometric means over seeds."""

    ratio: float
    upper: float
    """Upper end of the one-sided 95 % confidence interval of the ratio."""
    p: float
    """Two-sided p of Welch's test that the ratio is 1."""
    corrected: float
    """The same after Holm's correction."""
    seeds: tuple[int, int]

    @property
    def verdict(self) -> Verdict:
        """What may be said; see the file's head."""
        if self.corrected <= LEVEL:
            return "wins" if self.ratio < 1 else "loses"
        return "not worse" if self.upper <= MARGIN else "open"


def compare(pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> dict[str, Comparison]:
    """Compare (ours, theirs), the errors of the seeds, on each problem of a table.

    >>> found = compare({"a": ([1.0, 1.1, 0.9], [2.0, 2.2, 1.9]), "b": ([1.0, 1.2], [1.1, 1.0])})
    >>> found["a"].verdict, found["b"].verdict
    ('wins', 'open')
    """
    tests = {name: _welch(*pair) for name, pair in pairs.items()}
    corrected = holm({name: p for name, (_, _, p) in tests.items()})
    return {
        name: Comparison(ratio, upper, p, corrected[name], (len(pairs[name][0]), len(pairs[name][1])))
        for name, (ratio, upper, p) in tests.items()
    }


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """Holm's correction: the i-th smallest of m p-values times m - i + 1, made to increase, at most 1.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    found, largest = {}, 0.0
    for rank, name in enumerate(sorted(values, key=lambda key: values[key])):
        largest = max(largest, min(1.0, (len(values) - rank) * values[name]))
        found[name] = largest
    return {name: found[name] for name in values}


def _welch(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Ratio of geometric means, its upper bound, and the two-sided p."""
    logs = [np.log(np.asarray(errors, dtype=np.float64)) for errors in (ours, theirs)]
    if min(len(each) for each in logs) < LEAST_SEEDS or not all(np.isfinite(each).all() for each in logs):
        raise ConfigError(
            f"a comparison needs at least {LEAST_SEEDS} positive finite errors of each model, got {ours} and {theirs}"
        )
    difference = float(logs[0].mean() - logs[1].mean())
    shares = [float(each.var(ddof=1)) / len(each) for each in logs]
    spread = math.sqrt(sum(shares))
    if spread == 0:
        return math.exp(difference), math.exp(difference), 1.0 if difference == 0 else 0.0
    freedom = spread**4 / sum(share**2 / (len(each) - 1) for share, each in zip(shares, logs, strict=True))
    p = 2 * float(stats.t.sf(abs(difference) / spread, freedom))
    return math.exp(difference), math.exp(difference + float(stats.t.ppf(1 - LEVEL, freedom)) * spread), p
