"""Welch's test on logarithms with Holm's correction: against scipy, known values, and its false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from experiments.comparison import MARGIN, compare, holm
from spectrakan.errors import ConfigError


def test_it_is_welchs_test_on_logarithms():
    ours, theirs = [1.0, 1.3, 0.9, 1.1], [1.4, 1.5, 1.3]
    found = compare({"a": (ours, theirs)})["a"]
    oracle = stats.ttest_ind(np.log(ours), np.log(theirs), equal_var=False)
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-10)
    assert found.ratio == pytest.approx(stats.gmean(ours) / stats.gmean(theirs))
    two_sided = oracle.confidence_interval(0.9)
    assert found.upper == pytest.approx(math.exp(two_sided.high), rel=1e-10)


def test_holms_correction_is_that_of_its_definition():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == pytest.approx(
        {"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06}
    )
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_verdicts():
    close = [1.0, 1.01, 0.99, 1.005, 0.995]
    pairs = {
        "better": (close, [2 * error for error in close]),
        "worse": ([3 * error for error in close], close),
        "equal": (close, close),
        "noisy": ([0.5, 2.0, 1.0], [0.6, 1.8, 1.1]),
    }
    found = compare(pairs)
    assert {name: each.verdict for name, each in found.items()} == {
        "better": "wins", "worse": "loses", "equal": "not worse", "noisy": "open"
    }  # fmt: skip
    assert found["equal"].upper <= MARGIN < found["noisy"].upper


def test_equal_models_are_rarely_called_different():
    """With five seeds and no difference, false wins or losses stay near the level over six problems together."""
    draws = np.random.default_rng(0)
    alarms = 0
    for _ in range(400):
        errors = {
            str(name): (np.exp(0.1 * draws.normal(size=5)), np.exp(0.1 * draws.normal(size=5))) for name in range(6)
        }
        alarms += any(each.verdict in ("wins", "loses") for each in compare(errors).values())
    assert alarms / 400 < 0.08


@pytest.mark.parametrize("errors", [[1.0], [1.0, math.inf], [1.0, 0.0]])
def test_what_cannot_be_tested_is_refused(errors):
    with np.errstate(divide="ignore"), pytest.raises(ConfigError, match="positive finite"):
        compare({"a": (errors, [1.0, 2.0])})
