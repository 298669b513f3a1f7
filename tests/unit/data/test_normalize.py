"""Fitted units: right moments, only from the samples named, exact way back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spectrakan.data import normalize
from spectrakan.data.normalize import fit_normalizer, fit_units
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.fields import FieldSpec, Grid, Trajectories

FIELDS = (FieldSpec("rho", positive=True), FieldSpec("v"), FieldSpec("ground"))


def field_values(samples: int = 12) -> np.ndarray:
    draw = np.random.default_rng(0)
    values = np.empty((samples, 5, 8, 3))
    values[..., 0] = np.exp(draw.normal(1.0, 2.0, values.shape[:-1]))
    values[..., 1] = draw.normal(-3.0, 0.1, values.shape[:-1])
    values[..., 2] = 273.15
    return values


def trajectories(values: np.ndarray) -> Trajectories:
    return Trajectories(values, Grid.uniform((8,)), np.arange(5.0), FIELDS)


@pytest.mark.parametrize("chunk", [1, 300, 10**9])
def test_moments_are_those_of_the_training_samples_whatever_the_chunk(monkeypatch: pytest.MonkeyPatch, chunk: int):
    monkeypatch.setattr(normalize, "CHUNK_VALUES", chunk)
    values = field_values()
    train = [0, 3, 4, 7]
    units = fit_normalizer(values, train, FIELDS)
    flat = values[train].reshape(-1, 3)
    np.testing.assert_allclose(units.mean.numpy(), flat.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(units.scale[:2].numpy(), flat.std(axis=0)[:2], rtol=1e-6)


def test_other_samples_have_no_say():
    values = field_values()
    train = [0, 1, 2]
    before = fit_normalizer(values, train, FIELDS)
    values[3:] = np.nan
    after = fit_normalizer(values, train, FIELDS)
    assert torch.equal(before.mean, after.mean)
    assert torch.equal(before.scale, after.scale)


def test_a_positive_field_is_scaled_by_its_logarithm():
    values = field_values()
    units = fit_units(trajectories(values), range(12), log_positive=True).outputs
    assert units.logarithmic.tolist() == [True, False, False]
    scaled = units.double().normalize(torch.from_numpy(values))[..., 0]
    assert abs(float(scaled.mean())) < 1e-6
    assert abs(float(scaled.std()) - 1) < 2e-3
    assert fit_units(trajectories(values), range(12)).outputs.logarithmic.any().item() is False


@pytest.mark.parametrize("log_positive", [False, True])
def test_there_and_back_changes_nothing_but_the_last_bits(log_positive: bool):
    values = torch.from_numpy(field_values())
    units = fit_normalizer(values.numpy(), range(12), FIELDS, log_positive=log_positive).double()
    back = units.denormalize(units.normalize(values))
    assert float(((back - values) / (units.mean.abs() + units.scale + values.abs())).abs().max()) < 1e-14


@pytest.mark.parametrize("constant", [0.0, 273.15, 1e-30, -1e20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_field_becomes_zero_and_comes_back(constant: float, dtype: type):
    values = np.full((4, 3, 2, 1), constant, dtype=dtype)
    units = fit_normalizer(values, range(4), (FieldSpec("c"),)).double()
    assert float(units.scale) == 1.0
    scaled = units.normalize(torch.from_numpy(values).double())
    np.testing.assert_allclose(units.denormalize(scaled).numpy(), values, rtol=1e-7)


def test_a_small_variation_on_a_large_mean_keeps_its_size():
    draw = np.random.default_rng(1)
    values = 101325.0 + 1e-4 * draw.normal(size=(50, 4, 8, 1))
    units = fit_normalizer(values, range(50), (FieldSpec("p"),))
    assert float(units.scale) == pytest.approx(values.std(), rel=1e-4)


def test_steady_tasks_and_parameters_have_their_own_units():
    inputs = np.full((4, 1, 8, 1), 2.0)
    inputs[::2] = 4.0
    made = Trajectories(
        np.arange(32.0).reshape(4, 1, 8, 1), Grid.uniform((8,)), np.zeros(1), (FieldSpec("u"),),
        inputs=inputs, input_fields=(FieldSpec("a"),), params=np.array([[0.0], [2.0], [4.0], [6.0]]),
        param_names=("beta",),
    )  # fmt: skip
    units = fit_units(made, range(4))
    assert (float(units.inputs.mean), float(units.inputs.scale)) == (3.0, 1.0)
    assert float(units.outputs.mean) == 15.5
    assert units.params is not None
    assert float(units.params.mean) == 3.0
    assert float(units.params.scale) == pytest.approx(5**0.5)


def test_time_dependent_inputs_share_the_units_of_the_outputs():
    units = fit_units(trajectories(field_values()), range(12))
    assert units.inputs is units.outputs
    assert units.params is None


def test_bad_numbers_are_named():
    values = field_values()
    values[2, 1, 3, 1] = np.inf
    with pytest.raises(DataFormatError, match="'v' has NaN or infinite"):
        fit_normalizer(values, range(12), FIELDS)
    values = field_values()
    values[2, 1, 3, 0] = -1.0
    with pytest.raises(DataFormatError, match="'rho' should be positive but reaches -1"):
        fit_normalizer(values, range(12), FIELDS, log_positive=True)
    with pytest.raises(ConfigError, match="no samples"):
        fit_normalizer(values, [], FIELDS)
