"""The PDEBench convention against plain loops over its written definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spectrakan.fields import Grid
from spectrakan.metrics import METRICS, evaluate_fields, score_fields


def batch_scores(pred, target):
    """One mini-batch, name -> (time, channel), by loops over samples, frames, fields and modes."""
    samples, frames, *space, fields = pred.shape
    cells = math.prod(space)
    out = {name: np.zeros((frames, fields)) for name in METRICS if name != "relative_l2"}
    for t in range(frames):
        for c in range(fields):
            e = [pred[b, t, ..., c] - target[b, t, ..., c] for b in range(samples)]
            true = [target[b, t, ..., c] for b in range(samples)]
            rms = [math.sqrt((x**2).sum() / cells) for x in e]
            out["rmse"][t, c] = sum(rms) / samples
            norm = [math.sqrt((x**2).sum() / cells) for x in true]
            out["nrmse"][t, c] = sum(r / n for r, n in zip(rms, norm, strict=True)) / samples
            out["max_error"][t, c] = max(np.abs(x).max() for x in e)
            out["crmse"][t, c] = math.sqrt(sum(x.sum() ** 2 for x in e) / samples) / cells
            out["brmse"][t, c] = sum(math.sqrt(edge_sum(x) / edge_count(space)) for x in e) / samples
            amplitude = shell_amplitudes(e, space)
            for name, part in (("low", amplitude[:4]), ("mid", amplitude[4:12]), ("high", amplitude[12:])):
                out[f"frmse_{name}"][t, c] = sum(part) / len(part) if part else math.nan
    if len(space) == 3:  # all fields together, then one root for each sample and frame
        for t in range(frames):
            roots = [
                math.sqrt(
                    sum(edge_sum(pred[b, t, ..., c] - target[b, t, ..., c]) for c in range(fields))
                    / edge_count(space)
                )
                for b in range(samples)
            ]
            out["brmse"][t, :] = sum(roots) / samples
    return {name: value.mean() for name, value in out.items()}


def edge_sum(e):
    total = 0.0
    for axis in range(e.ndim):
        total += (np.take(e, 0, axis) ** 2).sum() + (np.take(e, -1, axis) ** 2).sum()
    return total


def edge_count(space):
    if len(space) == 1:
        return 2
    if len(space) == 2:
        return 2 * space[0] + 2 * space[1]
    nx, ny, nz = space
    return 2 * nx * ny + 2 * ny * nz + 2 * nz * nx


def shell_amplitudes(errors, space):
    cells = math.prod(space)
    if len(space) == 1:
        transforms = [np.fft.rfft(e) for e in errors]
        return [
            math.sqrt(sum(abs(f[k]) ** 2 for f in transforms) / len(errors)) / cells for k in range(space[0] // 2 + 1)
        ]
    last = min(size // 2 for size in space) - 1
    transforms = [np.fft.fftn(e) for e in errors]
    sums = [0.0] * (last + 1)
    for mode in np.ndindex(*(size // 2 for size in space)):
        shell = math.isqrt(sum(k * k for k in mode))
        if shell <= last:
            sums[shell] += sum(abs(f[mode]) ** 2 for f in transforms)
    return [math.sqrt(total / len(errors)) / cells for total in sums]


def oracle(pred, target, batch_size):
    batches = [
        batch_scores(pred[i : i + batch_size], target[i : i + batch_size]) for i in range(0, len(pred), batch_size)
    ]
    scores = {name: sum(batch[name] for batch in batches) / len(batches) for name in batches[0]}
    ratios = [
        np.linalg.norm(pred[b, ..., c] - target[b, ..., c]) / np.linalg.norm(target[b, ..., c])
        for b in range(len(pred))
        for c in range(pred.shape[-1])
    ]
    return scores | {"relative_l2": sum(ratios) / len(ratios)}


def pair(shape, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(1.0, 2.0, shape), random.normal(0.5, 1.0, shape)


SPACES = [
    *[(n,) for n in (1, 2, 3, 7, 8, 9, 25, 32, 33)],
    *[(8, 8), (9, 9), (26, 26), (27, 27), (32, 24), (24, 33), (5, 40), (31, 17), (2, 2), (3, 1)],
    *[(8, 8, 8), (9, 7, 8), (26, 5, 10), (3, 3, 3), (28, 26, 27)],
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_agrees_with_plain_loops(space):
    pred, target = pair((5, 2, *space, 2))
    found = evaluate_fields(pred, target, convention="pdebench", batch_size=2)
    expected = oracle(pred, target, 2)
    assert tuple(found) == METRICS
    for name in METRICS:
        assert found[name] == pytest.approx(expected[name], rel=1e-11, abs=1e-14, nan_ok=True), name


@pytest.mark.parametrize("batch_size", [1, 2, 3, 6, 7, 100])
def test_every_batch_size_and_a_smaller_last_batch(batch_size):
    pred, target = pair((7, 2, 12, 10, 1), seed=batch_size)
    found = evaluate_fields(pred, target, convention="pdebench", batch_size=batch_size)
    expected = oracle(pred, target, batch_size)
    assert found == pytest.approx(expected, rel=1e-11, nan_ok=True)


def test_the_band_without_shells_is_nan_and_the_others_are_not():
    pred, target = pair((2, 1, 9, 40, 1))  # shells 0..3 only
    scores = evaluate_fields(pred, target, convention="pdebench", batch_size=2)
    assert {name for name in METRICS if math.isnan(scores[name])} == {"frmse_mid", "frmse_high"}


@pytest.mark.parametrize("space", [(20,), (14, 11), (6, 5, 7)], ids=str)
def test_a_field_and_a_frame_score_as_they_would_alone(space):
    pred, target = pair((5, 3, *space, 2))
    whole = score_fields(pred, target, convention="pdebench", batch_size=2)
    for c in range(2):
        alone = oracle(pred[..., c : c + 1], target[..., c : c + 1], 2)
        for name in METRICS:
            assert whole.per_field[name][c] == pytest.approx(alone[name], rel=1e-11, nan_ok=True), name
    for t in range(3):
        alone = oracle(pred[:, t : t + 1], target[:, t : t + 1], 2)
        for name in METRICS:
            assert whole.per_frame[name][t] == pytest.approx(alone[name], rel=1e-11, nan_ok=True), name


def test_mini_batches_are_cut_from_the_whole_set_not_from_its_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("spectrakan.metrics.shapes.BLOCK_VALUES", 120)  # three samples at a time
    pred, target = pair((11, 2, 10, 2))
    found = evaluate_fields(pred, target, convention="pdebench", batch_size=4)
    assert found == pytest.approx(oracle(pred, target, 4), rel=1e-11, nan_ok=True)


def test_a_zero_frame_is_infinite_as_published():
    target = np.zeros((1, 1, 8, 1))
    scores = evaluate_fields(target + 1, target, convention="pdebench", batch_size=1)
    assert scores["nrmse"] == math.inf


def test_cells_count_the_same_whatever_the_grid():
    pred, target = pair((3, 2, 8, 16, 1))
    globe = Grid.latitude_longitude(torch.linspace(-80, 80, 8), torch.arange(16) * 22.5)
    options = {"convention": "pdebench", "batch_size": 2}
    plain = evaluate_fields(pred, target, **options)
    assert evaluate_fields(pred, target, grid=globe, **options) == pytest.approx(plain, rel=0, nan_ok=True)
    assert evaluate_fields(pred, target, grid=globe)["rmse"] != evaluate_fields(pred, target)["rmse"]


def test_it_depends_on_the_batch_size_where_pdebench_does():
    pred, target = pair((8, 2, 32, 1))
    one, eight = (evaluate_fields(pred, target, convention="pdebench", batch_size=n) for n in (1, 8))
    changed = {name for name in METRICS if abs(one[name] - eight[name]) > 1e-9}
    assert changed == {"max_error", "crmse", "frmse_low", "frmse_mid", "frmse_high"}
