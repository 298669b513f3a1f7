"""Laws that every score obeys, whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrakan.metrics import METRICS, MetricAccumulator, evaluate_fields, score_fields

SPACES = st.sampled_from([(1,), (9,), (26,), (5, 4), (8, 9), (27, 26), (3, 4, 5)])
RELATIVE = ("nrmse", "relative_l2")


@st.composite
def pairs(draw, min_samples=1):
    shape = (
        draw(st.integers(min_samples, 6)),
        draw(st.integers(1, 3)),
        *draw(SPACES),
        draw(st.integers(1, 3)),
    )
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    target = random.normal(0.3, 1.0, shape)
    if draw(st.booleans()):
        target[0, ..., 0] = 0.0  # a field may be zero
    return random.normal(size=shape) * draw(st.sampled_from([1e-6, 1.0, 1e6])), target


def same(left, right, rel=1e-11):
    return left == pytest.approx(right, rel=rel, abs=0, nan_ok=True)


@given(pairs(), st.floats(1e-3, 1e3), st.sampled_from([-1.0, 1.0]))
@settings(max_examples=60, deadline=None)
def test_units_change_absolute_scores_in_proportion_and_relative_ones_not_at_all(pair, factor, sign):
    pred, target = pair
    before = evaluate_fields(pred, target)
    after = evaluate_fields(sign * factor * pred, sign * factor * target)
    expected = {name: value * (1 if name in RELATIVE else factor) for name, value in before.items()}
    assert same(after, expected, rel=1e-9)


@given(pairs(), st.floats(0.1, 10.0))
@settings(max_examples=40, deadline=None)
def test_scores_scale_with_the_error(pair, factor):
    error, target = pair
    small, large = (evaluate_fields(target + size * error, target) for size in (1.0, factor))
    # The sum target + error rounds at the target's size, so tiny errors are known to fewer digits.
    for name in METRICS:
        if name in RELATIVE and not target.any():
            continue  # right or wrong: nothing to be relative to
        assert large[name] == pytest.approx(factor * small[name], rel=1e-7, abs=1e-13, nan_ok=True), name


@given(pairs(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_samples_fields_and_frames_does_not_matter(pair, random):
    pred, target = pair
    before = evaluate_fields(pred, target)
    for axis in (0, 1, pred.ndim - 1):
        order = list(range(pred.shape[axis]))
        random.shuffle(order)
        assert same(evaluate_fields(pred.take(order, axis), target.take(order, axis)), before)


@given(pairs(), st.data())
@settings(max_examples=60, deadline=None)
def test_turning_or_mirroring_space_does_not_matter(pair, data):
    pred, target = pair
    axes = list(range(2, pred.ndim - 1))
    order = data.draw(st.permutations(axes))
    flips = data.draw(st.lists(st.sampled_from(axes), unique=True))
    moved = [
        np.flip(part.transpose(0, 1, *order, part.ndim - 1), flips) if flips
        else part.transpose(0, 1, *order, part.ndim - 1)
        for part in pair
    ]  # fmt: skip
    assert same(evaluate_fields(moved[0].copy(), moved[1].copy()), evaluate_fields(pred, target))


@given(pairs(), st.data())
@settings(max_examples=120, deadline=None)
def test_a_stream_in_any_batching_equals_the_whole(pair, data):
    pred, target = pair
    samples = len(pred)
    with np.errstate(all="ignore"):
        whole = score_fields(pred, target)
    cuts = sorted(data.draw(st.lists(st.integers(0, samples), max_size=5)))
    stream = MetricAccumulator()
    for start, stop in zip([0, *cuts], [*cuts, samples], strict=True):
        stream.update(pred[start:stop], target[start:stop])
    found = stream.result()
    assert found.num_samples == samples
    assert same(found.reduced, whole.reduced, rel=1e-12)
    for name in METRICS:
        for kind in ("per_field", "per_frame"):
            left, right = getattr(found, kind)[name], getattr(whole, kind)[name]
            np.testing.assert_allclose(left, right, rtol=1e-12, atol=0)


@given(pairs(min_samples=2), st.data())
@settings(max_examples=60, deadline=None)
def test_merged_streams_equal_the_whole(pair, data):
    pred, target = pair
    cut = data.draw(st.integers(0, len(pred)))
    left, right = MetricAccumulator(), MetricAccumulator()
    left.update(pred[:cut], target[:cut])
    right.update(pred[cut:], target[cut:])
    left.merge(right)
    assert same(left.result().reduced, evaluate_fields(pred, target), rel=1e-12)


@given(pairs())
@settings(max_examples=40, deadline=None)
def test_the_scores_are_ordered_as_they_must_be(pair):
    pred, target = pair
    scores = evaluate_fields(pred, target)
    slack = 1 + 1e-12
    assert scores["crmse"] <= scores["rmse"] * slack  # a mean is no larger than a root mean square
    assert scores["rmse"] <= scores["max_error"] * slack
    assert scores["brmse"] <= scores["max_error"] * slack
    for band in ("frmse_low", "frmse_mid", "frmse_high"):
        assert not scores[band] > scores["rmse"] * slack  # Parseval; NaN where the band is empty
