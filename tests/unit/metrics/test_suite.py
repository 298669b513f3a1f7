"""Closed forms, streams and refusals of the whole suite."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Grid
from spectrakan.metrics import METRICS, MetricAccumulator, evaluate_fields, score_fields

CONVENTIONS = {"exact": {}, "pdebench": {"convention": "pdebench", "batch_size": 2}}
SPACES = [(32,), (33,), (32, 32), (27, 40), (26, 30, 28)]


def random_pair(shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(shape, generator=generator, dtype=torch.float64),
        torch.randn(shape, generator=generator, dtype=torch.float64) + 1.0,
    )


@pytest.mark.parametrize("options", CONVENTIONS.values(), ids=CONVENTIONS)
@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("bias", [-0.3, 2.0])
def test_constant_bias(space, bias, options):
    _, target = random_pair((4, 3, *space, 1))
    scores = evaluate_fields(target + bias, target, **options)
    for name in ("rmse", "max_error", "crmse", "brmse"):
        assert scores[name] == pytest.approx(abs(bias), rel=1e-12), name
    assert scores["frmse_low"] == pytest.approx(abs(bias) / 4, rel=1e-12)
    assert scores["frmse_mid"] == pytest.approx(0.0, abs=1e-15)
    assert scores["frmse_high"] == pytest.approx(0.0, abs=1e-15)


def test_constant_bias_of_a_constant_truth_is_relative_to_it():
    target = torch.full((2, 3, 8, 8, 1), 4.0)
    scores = evaluate_fields(target + 1.0, target)
    assert scores["nrmse"] == scores["relative_l2"] == pytest.approx(0.25, rel=1e-14)


@pytest.mark.parametrize("options", CONVENTIONS.values(), ids=CONVENTIONS)
def test_a_perfect_prediction_scores_zero(options):
    _, target = random_pair((4, 2, 26, 26, 2))
    assert evaluate_fields(target.clone(), target, **options) == dict.fromkeys(METRICS, 0.0)


def test_exact_definitions_by_loops_on_uneven_cells():
    grid = Grid.from_edges([torch.tensor([0.0, 1.0, 3.0, 4.0]), torch.tensor([0.0, 0.5, 2.0])])
    pred, target = (part.numpy() for part in random_pair((3, 4, 3, 2, 2)))
    w = np.outer([0.25, 0.5, 0.25], [0.25, 0.75])
    scores = {name: [] for name in ("rmse", "nrmse", "crmse", "brmse")}
    for b in range(3):
        for c in range(2):
            e, true = (pred - target)[b, ..., c], target[b, ..., c]
            scores["rmse"].append(math.sqrt(np.mean([(w * x**2).sum() for x in e])))
            scores["nrmse"].append(scores["rmse"][-1] / math.sqrt(np.mean([(w * x**2).sum() for x in true])))
            scores["crmse"].append(math.sqrt(np.mean([(w * x).sum() ** 2 for x in e])))
            faces = [(0, slice(None)), (-1, slice(None)), (slice(None), 0), (slice(None), -1)]
            weight = sum(w[face].sum() for face in faces)
            edge = [sum((w[face] * x[face] ** 2).sum() for face in faces) / weight for x in e]
            scores["brmse"].append(math.sqrt(np.mean(edge)))
    found = evaluate_fields(pred, target, grid=grid)
    for name, values in scores.items():
        assert found[name] == pytest.approx(np.mean(values), rel=1e-13), name
    assert found["max_error"] == np.abs(pred - target).max()
    assert found["relative_l2"] == found["nrmse"]


def test_relative_l2_is_over_all_frames_and_nrmse_of_pdebench_is_not():
    target = torch.tensor([1.0, 10.0]).reshape(1, 2, 1, 1).expand(1, 2, 4, 1)
    pred = target + 1.0
    whole = math.sqrt(2.0 / 101.0)
    assert evaluate_fields(pred, target)["relative_l2"] == pytest.approx(whole, rel=1e-14)
    published = evaluate_fields(pred, target, convention="pdebench", batch_size=1)
    assert published["relative_l2"] == pytest.approx(whole, rel=1e-14)
    assert published["nrmse"] == pytest.approx((1.0 + 0.1) / 2, rel=1e-14)


@pytest.mark.parametrize("space", [(20,), (13, 26), (6, 5, 7)], ids=str)
def test_a_field_and_a_frame_score_as_they_would_alone(space):
    pred, target = random_pair((4, 3, *space, 2))
    whole = score_fields(pred, target)
    assert whole.num_samples == 4
    for c in range(2):
        alone = evaluate_fields(pred[..., c : c + 1], target[..., c : c + 1])
        for name in METRICS:
            assert whole.per_field[name][c] == pytest.approx(alone[name], rel=1e-12, nan_ok=True), name
    for t in range(3):
        alone = evaluate_fields(pred[:, t : t + 1], target[:, t : t + 1])
        for name in METRICS:
            assert whole.per_frame[name][t] == pytest.approx(alone[name], rel=1e-12, nan_ok=True), name
    named = whole.by_field(["rho", "u"])
    assert named["u"]["brmse"] == whole.per_field["brmse"][1]


def test_names_must_fit_the_fields():
    scores = score_fields(*random_pair((1, 1, 4, 2)))
    with pytest.raises(ShapeError, match="2 fields need as many different names"):
        scores.by_field(["u", "u"])


def test_a_zero_field_gives_no_infinite_score():
    pred, target = random_pair((3, 2, 26, 2))
    alone = evaluate_fields(pred[..., :1], target[..., :1])
    target[..., 1] = 0.0
    scores = score_fields(pred, target)
    assert all(math.isfinite(score) for score in scores.reduced.values())
    # The zero field has no relative error of its own, so the other one is all there is to average.
    assert scores.reduced["nrmse"] == pytest.approx(alone["nrmse"], rel=1e-13)
    assert scores.per_field["nrmse"][1] == 1.0
    assert scores.reduced["rmse"] > 0.5 * scores.per_field["rmse"][1] > 0.0


def test_a_zero_sample_is_left_out_of_the_relative_error_alone():
    pred, target = random_pair((3, 2, 26, 1))
    target[1] = 0.0
    rest = [0, 2]
    scores, others = evaluate_fields(pred, target), evaluate_fields(pred[rest], target[rest])
    assert scores["relative_l2"] == pytest.approx(others["relative_l2"], rel=1e-13)
    assert scores["rmse"] != pytest.approx(others["rmse"], rel=1e-6)


def test_where_all_truth_is_zero_a_prediction_is_right_or_wrong():
    zero = torch.zeros(2, 2, 26, 1)
    assert evaluate_fields(zero, zero)["nrmse"] == 0.0
    assert evaluate_fields(zero + 1e-3, zero)["nrmse"] == 1.0
    assert math.isnan(evaluate_fields(zero * math.nan, zero)["nrmse"])


@pytest.mark.parametrize("options", CONVENTIONS.values(), ids=CONVENTIONS)
@pytest.mark.parametrize("zero_truth", [False, True])
def test_one_nan_makes_every_score_nan(options, zero_truth):
    pred, target = random_pair((4, 3, 30, 26, 2))
    pred[2, 1, 0, 3, 1] = math.nan
    if zero_truth:
        target[2, ..., 1] = 0.0
    scores = score_fields(pred, target, **options)
    assert all(math.isnan(score) for score in scores.reduced.values())
    for name in METRICS:
        if not zero_truth:
            assert np.isfinite(scores.per_frame[name][[0, 2]]).all(), name
            assert math.isfinite(scores.per_field[name][0]), name
        assert math.isnan(scores.per_frame[name][1]), name


def test_a_blow_up_is_scored_infinite_or_nan_and_never_raises():
    pred, target = random_pair((2, 2, 26, 26, 1))
    pred[0, 1, 3, 3, 0] = math.inf
    scores = evaluate_fields(pred, target)
    assert scores["rmse"] == scores["max_error"] == math.inf
    assert math.isnan(scores["frmse_low"])
    huge = evaluate_fields(target * 1e200, target)
    assert huge["max_error"] > 1e199


def test_numpy_tensors_and_single_precision_give_the_same():
    pred, target = random_pair((2, 2, 26, 26, 2))
    pred, target = pred.float(), target.float()
    expected = evaluate_fields(pred, target)
    assert evaluate_fields(pred.numpy(), target.numpy()) == expected
    assert evaluate_fields(pred, target.numpy().astype(np.float64)) == expected
    assert evaluate_fields(pred.clone().requires_grad_(True), target) == expected


def test_sums_are_in_double_precision():
    target = torch.zeros(1, 1, 512, 512, 1)
    pred = torch.full_like(target, 1e-4) + 1e4
    error = float(pred[0, 0, 0, 0, 0])
    assert evaluate_fields(pred, target)["rmse"] == pytest.approx(error, rel=1e-14)


@pytest.mark.parametrize("options", CONVENTIONS.values(), ids=CONVENTIONS)
def test_large_arrays_are_read_in_blocks_with_the_same_result(options, monkeypatch):
    pred, target = random_pair((7, 2, 26, 26, 2))
    whole = evaluate_fields(pred, target, **options)
    monkeypatch.setattr("spectrakan.metrics.shapes.BLOCK_VALUES", 5000)
    assert evaluate_fields(pred, target, **options) == pytest.approx(whole, rel=1e-13)


class Lazy:
    """An array whose parts are made when asked for, and which counts the largest part."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.largest = values, values.shape, values.dtype, 0

    def __getitem__(self, key):
        part = self.values[key]
        self.largest = max(self.largest, part.size)
        return part

    def __array__(self, dtype=None, copy=None):
        raise MemoryError("the whole does not fit")


def test_an_array_on_disk_is_never_read_whole(monkeypatch):
    monkeypatch.setattr("spectrakan.metrics.shapes.BLOCK_VALUES", 100)
    pred, target = (part.numpy() for part in random_pair((9, 1, 26, 1)))
    lazy = Lazy(pred)
    assert evaluate_fields(lazy, target) == evaluate_fields(pred, target)
    assert lazy.largest <= 100


def test_a_stream_goes_to_another_process_and_on_there():
    pred, target = random_pair((7, 2, 9, 2))  # no high band: the sums hold NaN
    pred[0, 0, 0, 0] = math.inf
    stream, again = MetricAccumulator(), MetricAccumulator()
    again.merge(copy.deepcopy(stream))
    stream.update(pred[:3], target[:3])
    again.merge(copy.deepcopy(stream))
    for one in (stream, again):
        one.update(pred[3:], target[3:])
    assert again.result().reduced == pytest.approx(stream.result().reduced, rel=0, nan_ok=True)
    assert again.result().num_samples == 7


def test_a_state_needs_its_own_cells():
    globe = Grid.latitude_longitude(torch.linspace(-60, 60, 4), torch.arange(6) * 60.0)
    stream = MetricAccumulator(globe)
    stream.update(*random_pair((1, 1, 4, 6, 1)))
    again = MetricAccumulator(globe)
    again.merge(stream)
    assert again.result().num_samples == 1
    with pytest.raises(ShapeError, match="other cell weights"):
        MetricAccumulator().merge(stream)


def test_processes_are_merged_in_order():
    pred, target = random_pair((9, 2, 26, 1))
    parts = []
    for start, stop in ((0, 4), (4, 4), (4, 6), (6, 9)):
        parts.append(MetricAccumulator())
        parts[-1].update(pred[start:stop], target[start:stop])
    total = MetricAccumulator()
    for part in parts:
        total.merge(part)
    assert total.result().reduced == pytest.approx(evaluate_fields(pred, target), rel=1e-13)
    assert total.result().num_samples == 9
    assert parts[0].result().num_samples == 4, "merging must not change the other stream"


def test_what_cannot_be_merged_says_why():
    pred, target = random_pair((3, 1, 8, 1))
    other, fresh = MetricAccumulator(), MetricAccumulator()
    other.update(pred[:, :, :4], target[:, :, :4])
    fresh.update(pred, target)
    with pytest.raises(ShapeError, match="cannot be merged"):
        fresh.merge(other)


@pytest.mark.parametrize(
    ("pred", "target", "words"),
    [
        ((2, 3, 8), (2, 3, 8), "add a time axis"),
        ((2, 3, 4, 4, 4, 4, 1), (2, 3, 4, 4, 4, 4, 1), "1 to 3 space axes"),
        ((2, 3, 8, 1), (2, 4, 8, 1), "same shape"),
        ((2, 3, 8, 1), (2, 3, 8, 2), "same shape"),
        ((1, 3, 8, 1), (2, 3, 8, 1), "same shape"),
        ((2, 0, 8, 1), (2, 0, 8, 1), "without entries"),
        ((0, 3, 8, 1), (0, 3, 8, 1), "no sample"),
    ],
)
def test_wrong_shapes_are_refused(pred, target, words):
    with pytest.raises(ShapeError, match=words):
        evaluate_fields(torch.zeros(pred), torch.zeros(target))


def test_other_mistakes_are_refused():
    pred, target = random_pair((2, 1, 8, 1))
    with pytest.raises(ShapeError, match="the grid has"):
        evaluate_fields(pred, target, grid=Grid.uniform((9,)))
    with pytest.raises(ShapeError, match="real numbers"):
        evaluate_fields(pred.to(torch.complex128), target)
    with pytest.raises(ConfigError, match="did you mean 'pdebench'"):
        evaluate_fields(pred, target, convention="pdebnch")
    for size in (None, 0, -1):
        with pytest.raises(ConfigError, match="give batch_size"):
            evaluate_fields(pred, target, convention="pdebench", batch_size=size)
    stream = MetricAccumulator()
    with pytest.raises(ShapeError, match="no sample was given"):
        stream.result()
    stream.update(pred, target)
    with pytest.raises(ShapeError, match="this stream holds"):
        stream.update(pred[:, :, :4], target[:, :, :4])


@pytest.mark.parametrize("space", [(8,), (6, 8), (4, 4, 6)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("convention", ["exact", "pdebench"])
def test_one_bad_cell_inside_the_domain_spoils_every_score_with_a_value(space, bad, convention):
    truth = np.ones((3, 2, *space, 1))
    pred = truth + 0.5
    sound = evaluate_fields(pred, truth, convention=convention, batch_size=3)
    pred[(1, 1, *(size // 2 for size in space), 0)] = bad
    found = evaluate_fields(pred, truth, convention=convention, batch_size=3)
    for name, value in found.items():
        assert not np.isfinite(value) or np.isnan(sound[name]), name
