"""The probe: known R², by linear and by nonlinear fits, and the numbers that models give it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import spectrakan as sk
from experiments import probe
from experiments.archive import Archive
from experiments.cells import Cell, as_overrides
from experiments.datasets import Datasets
from experiments.execution import run_cell
from experiments.families.catalog import FAMILIES
from experiments.probe import described, explained, measure_probe
from spectrakan.data.generate import generate
from spectrakan.errors import ShapeError


def test_noise_leaves_the_share_that_it_has():
    """y = x + e with variances 1 and 1/4: a linear fit explains 4 / 5, and nothing explains pure noise."""
    draws = np.random.default_rng(3)
    x = draws.normal(size=(1000, 3))
    signal = x @ np.array([2.0, -2.0, 1.0]) / 3
    targets = np.stack([signal + 0.5 * draws.normal(size=1000), draws.normal(size=1000)], 1)
    found = explained(x * [1.0, 100.0, 1e-3] + 7, targets)
    assert found[0] == pytest.approx(0.8, abs=0.03), "units and offsets of features do not matter"
    assert abs(found[1]) < 0.02


def test_only_the_kernel_sees_what_is_not_linear():
    draws = np.random.default_rng(4)
    x = draws.uniform(-1, 1, size=(400, 2))
    targets = np.stack([np.square(x[:, 0]), x[:, 1]], 1)
    linear, gaussian = (explained(x, targets, kernel) for kernel in probe.KERNELS)
    assert linear[0] < 0.1
    assert gaussian[0] > 0.999
    assert linear[1] == pytest.approx(1.0, abs=1e-9)


def test_predictions_are_those_of_ridge_regression():
    """With one penalty the linear kernel gives the weights of the normal equations."""
    draws = np.random.default_rng(5)
    x, z = draws.normal(size=(30, 4)), draws.normal(size=(6, 4))
    x = (x - x.mean(0)) / x.std(0)
    y = draws.normal(size=(30, 1))
    penalty = 0.3
    strength = penalty * np.linalg.eigvalsh(x @ x.T).clip(min=0).mean()
    weights = np.linalg.solve(x.T @ x + strength * np.eye(4), x.T @ (y - y.mean()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "PENALTIES", (penalty,))
        assert np.allclose(probe._predict(x, y, z, "linear"), y.mean() + z @ weights)


def test_too_few_samples_are_refused():
    with pytest.raises(ShapeError, match="10 or more"):
        explained(np.zeros((9, 2)), np.zeros((9, 1)))


@pytest.mark.parametrize("given", [True, False])
def test_numbers_are_those_of_the_model(given: bool):
    family = FAMILIES["advection_diffusion1d"]
    data = generate(family.problem, 70, 32, frames=4, params=dict(family.ranges))
    signature = sk.OperatorSignature(
        space_dims=1, history=3, in_channels=1, out_channels=1, num_params=2 * given, boundary=("periodic",)
    )
    model = sk.build_model("spectrakan", signature, width=8)
    found = described(model, data)
    x = torch.as_tensor(data.values[:, :3], dtype=torch.float32)
    params = torch.as_tensor(data.params, dtype=torch.float32) if given else None
    token = model.token(x, params, data.grid).detach().double().numpy()
    assert np.allclose(found["token"], token, atol=1e-5)
    spread = x[:, -1, :, 0].var(1, correction=0)
    assert np.allclose(found["summary"][:, 0], x[:, -1, :, 0].mean(1), atol=1e-5)
    assert np.allclose(found["summary"][:, 1], (spread + 1e-6).sqrt(), atol=1e-5)
    if given:
        assert np.allclose(found["summary"][:, -2:], data.params, atol=1e-5)
        assert explained(found["summary"], np.asarray(data.params)).min() > 0.999


def test_a_trained_model_is_probed_and_shown(archive: Archive, monkeypatch):
    small = {
        "data.num_samples": 12, "data.resolution": 32, "data.frames": 5, "training.epochs": 1, "model.width": 8,
    }  # fmt: skip
    case = "advection_diffusion1d_hidden"
    cell = Cell("search", "smoke", case, "spectrakan", "default", 0, as_overrides(small), "whole", test=False)
    run_cell(cell, archive)
    family = FAMILIES["advection_diffusion1d"]
    samples = generate(family.problem, 100, 32, seed=9, frames=5, params=dict(family.ranges))
    monkeypatch.setattr(Datasets, "development", lambda self, case: samples)
    found = measure_probe(archive, tell=lambda text: None)
    assert json.loads((archive.folder / probe.FILE).read_text()) == found
    scores = found[case]["search-s0"]
    assert set(scores["token"]["linear"]) == {"speed", "log_diffusivity"}
    assert scores["summary"]["linear"]["speed"] > 0.5, "the change between frames shows the speed"
    (table,) = probe.tables(archive)
    assert {row.label for row in table.rows} == {f"{case}: log_diffusivity", f"{case}: speed"}
