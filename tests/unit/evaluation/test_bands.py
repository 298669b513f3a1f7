"""Conformal bands keep their promise where they make one, and make none elsewhere."""

from __future__ import annotations

import json
import math

import pytest
import torch
from scipy.stats import betabinom

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.evaluation import calibrate_bands, residual_scale


def trajectories(count, seed, space=(8, 8), frames=5, growth=1.0):
    """Truths, and predictions whose errors are heavy-tailed, smooth, growing in time and unequal by field."""
    generator = torch.Generator().manual_seed(seed)
    truth = torch.randn(count, frames, *space, 2, generator=generator, dtype=torch.float64)
    size = torch.randn(count, 1, *(1 for _ in space), 1, generator=generator, dtype=torch.float64).exp()
    noise = torch.randn(count, 1, *space, 2, generator=generator, dtype=torch.float64)
    time = torch.arange(1, frames + 1, dtype=torch.float64).reshape(1, -1, *(1 for _ in space), 1)
    unit = torch.tensor([1.0, 100.0], dtype=torch.float64)
    return truth + 0.1 * growth * size * noise * time * unit, truth


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_promised_coverage_is_reached_within_two_standard_errors(coverage, seed):
    scale = residual_scale(*trajectories(50, 1000 + seed))
    calibration, test = trajectories(200, 2000 + seed), trajectories(300, 3000 + seed)
    bands = calibrate_bands(*calibration, coverage=coverage, scale=scale)
    found = bands.measure(*test)
    assert found["promised"] == coverage
    assert found["standard_error"] == pytest.approx(math.sqrt(coverage * (1 - coverage) * (1 / 200 + 1 / 300)))
    assert found["kept"], found


def test_two_standard_errors_are_what_they_say():
    repeats, n_cal, n_test = 2000, 80, 100
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(repeats):
        pred = torch.randn(n_cal + n_test, 1, 1, 1, generator=generator, dtype=torch.float64)
        bands = calibrate_bands(pred[:n_cal], torch.zeros_like(pred[:n_cal]))
        found.append(bands.measure(pred[n_cal:], torch.zeros_like(pred[n_cal:])))
    # The k-th of n scores covers a Beta(k, n + 1 - k) share, of which the test draws a binomial sample.
    law = betabinom(n_test, 73, n_cal + 1 - 73)
    assert found[0]["standard_error"] * n_test == pytest.approx(law.std(), rel=0.02)
    mean = sum(each["measured"] for each in found) / repeats
    assert mean * n_test == pytest.approx(law.mean(), abs=3 * law.std() / math.sqrt(repeats))
    kept, share = sum(each["kept"] for each in found) / repeats, 1 - law.cdf(80)
    assert kept == pytest.approx(share, abs=3 * math.sqrt(share * (1 - share) / repeats))
    assert share > 0.95


def test_the_mean_coverage_is_exactly_the_rank_over_n_plus_one():
    count, coverage, repeats = 12, 0.8, 4000  # k = ceil(13 * 0.8) = 11
    generator = torch.Generator().manual_seed(0)
    found = 0.0
    for score in torch.randn(repeats, count + 1, 1, 1, 1, generator=generator, dtype=torch.float64):
        bands = calibrate_bands(score[:-1], torch.zeros_like(score[:-1]), coverage=coverage)
        found += bands.measure(score[-1:], torch.zeros_like(score[-1:]))["measured"] / repeats
    assert found == pytest.approx(11 / 13, abs=3 * math.sqrt(11 / 13 * 2 / 13 / repeats))


def test_the_scale_shapes_the_band_and_units_do_not_matter():
    pred, truth = trajectories(50, 4)
    scale = residual_scale(pred, truth)
    assert scale.shape == (5, 1, 1, 2)
    width = calibrate_bands(*trajectories(100, 5), scale=scale).half_width
    assert float((width[..., 1] / width[..., 0]).mean()) == pytest.approx(100.0, rel=0.1)
    assert float((width[4] / width[0]).mean()) == pytest.approx(5.0, rel=1e-9)
    twice = calibrate_bands(*trajectories(100, 5), scale=2 * scale).half_width
    torch.testing.assert_close(twice, width, rtol=1e-12, atol=0)


def test_a_model_that_got_worse_is_found_out():
    bands = calibrate_bands(*trajectories(200, 6))
    found = bands.measure(*trajectories(200, 7, growth=3.0))
    assert found["measured"] < found["promised"] - 4 * found["standard_error"]
    assert not found["kept"]


def test_time_ordered_splits_carry_no_promise():
    bands = calibrate_bands(*trajectories(50, 8), time_ordered=True)
    found = bands.measure(*trajectories(50, 9))
    assert found["promised"] is None
    assert not found["kept"]
    assert json.loads(json.dumps(found))["promised"] is None


def test_a_failed_rollout_counts_as_the_worst_and_lies_outside():
    pred, truth = trajectories(20, 12)
    clean = calibrate_bands(pred, truth, coverage=0.9)  # the 19th of 20
    pred[3] = math.nan
    spoiled = calibrate_bands(pred, truth, coverage=0.9)
    assert bool(spoiled.half_width.isfinite().all())
    assert bool((spoiled.half_width >= clean.half_width).all())
    pred[4] = math.inf
    assert bool(calibrate_bands(pred, truth, coverage=0.9).half_width.isinf().all())
    assert calibrate_bands(pred, truth, coverage=0.8).measure(pred[3:4], truth[3:4])["measured"] == 0.0


@pytest.mark.parametrize(("coverage", "needed"), [(0.9, 9), (0.95, 19), (0.8, 4), (0.7, 3), (0.99, 99)])
def test_too_few_trajectories_are_refused_with_the_number_needed(coverage, needed):
    pair = (
        torch.randn(needed, 1, 4, 1, generator=torch.Generator().manual_seed(0)),
        torch.zeros(needed, 1, 4, 1),
    )
    largest = calibrate_bands(*pair, coverage=coverage).half_width
    if needed == 9:
        torch.testing.assert_close(largest, pair[0].abs().amax().double().expand(1, 4, 1))
    with pytest.raises(ConfigError, match=f"at least {needed} calibration"):
        calibrate_bands(pair[0][1:], pair[1][1:], coverage=coverage)


def test_mistakes_are_refused():
    pred, truth = trajectories(20, 13)
    bands = calibrate_bands(pred, truth)
    for coverage in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            calibrate_bands(pred, truth, coverage=coverage)
    with pytest.raises(ShapeError, match="does not broadcast"):
        calibrate_bands(pred, truth, scale=torch.ones(3))
    with pytest.raises(ShapeError, match="positive and finite"):
        calibrate_bands(pred, truth, scale=torch.zeros(2))
    with pytest.raises(ShapeError, match="resolutions and horizons"):
        bands.measure(pred[:, :, ::2], truth[:, :, ::2])
    with pytest.raises(ShapeError, match="same shape"):
        bands.measure(pred, truth[:3])
    with pytest.raises(ShapeError, match="at least one held-out"):
        bands.measure(pred[:0], truth[:0])


def test_perfect_predictions_keep_the_promise():
    truth = torch.randn(40, 2, 8, 1, generator=torch.Generator().manual_seed(0))
    bands = calibrate_bands(truth[:20], truth[:20])
    found = bands.measure(truth[20:], truth[20:])
    assert (found["measured"], float(bands.half_width.max())) == (1.0, 0.0)
    assert found["kept"]


def test_infinite_bands_cover_failed_rollouts():
    """One rollout in five fails: the 90 % quantile of the errors is infinite, and so nothing lies outside."""
    pairs = [trajectories(100, seed) for seed in (20, 21)]
    for pred, _ in pairs:
        pred[::5] = math.nan
    bands = calibrate_bands(*pairs[0], coverage=0.9)
    found = bands.measure(*pairs[1])
    assert bool(bands.half_width.isinf().all())
    assert (found["measured"], found["kept"]) == (1.0, True)
    # Where bands are finite a failed rollout is a miss: 80 % succeed, and 7 of 8 of them are covered.
    finite = calibrate_bands(*pairs[0], coverage=0.7)
    assert bool(finite.half_width.isfinite().all())
    assert finite.measure(*pairs[1])["measured"] == pytest.approx(0.7, abs=0.13)


def test_the_shape_of_bands_ignores_failed_rollouts():
    pred, truth = trajectories(40, 22)
    sound = residual_scale(pred[1:], truth[1:])
    pred[0, 3:] = math.nan
    torch.testing.assert_close(residual_scale(pred, truth), sound)
    pred[:] = math.nan
    assert residual_scale(pred, truth).unique().tolist() == [1.0]
