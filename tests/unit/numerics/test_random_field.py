"""Random fields have the statistics, the periods and the independence they claim."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.numerics.random_field import MultiModeField, log_uniform_draws


def waves(points: torch.Tensor, count: int, window: float, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return MultiModeField(length=2.0, num_modes=3, window_probability=window).draw(points, count, generator)


def test_waves_are_periodic_and_the_same_at_every_resolution():
    x = torch.linspace(-1.0, 1.0, 33, dtype=torch.float64)
    fields = waves(x, 200, 0.0)
    torch.testing.assert_close(fields[:, 0], fields[:, -1], rtol=0, atol=1e-12)
    assert torch.equal(waves(x[::4], 200, 0.5), waves(x, 200, 0.5)[:, ::4])


def test_waves_have_few_modes_and_unit_amplitudes():
    x = torch.arange(64, dtype=torch.float64) / 32.0
    fields = waves(x, 4000, 0.0)
    spectrum = torch.fft.rfft(fields, norm="forward").abs()
    smooth = spectrum[:, 7:].amax(1) < 1e-12
    # |U| has kinks unless U never changes sign; nothing else reaches past the sixth mode.
    assert 0.9 <= float(smooth.double().mean()) <= 0.97
    assert float(fields.abs().max()) <= 3.0
    # Three terms of variance E[A^2] / 2 = 1/6 each; folding does not change the square.
    assert float(fields.square().mean()) == pytest.approx(0.5, abs=0.03)


def test_windows_cut_the_asked_share_of_samples_at_independent_places():
    x = torch.linspace(-1.0, 1.0, 801, dtype=torch.float64)
    fields = waves(x, 4000, 0.5)
    cut = fields[:, x < 0.0].abs().amax(1) < 1e-6
    assert float(cut.double().mean()) == pytest.approx(0.5, abs=0.03)
    ones = fields[cut].abs() > 1e-3
    left = x[ones.double().argmax(1)]
    right = x.flip(0)[ones.flip(1).double().argmax(1)]
    assert 0.05 < float(left.min()) < 0.12
    assert 0.88 < float(right.max()) < 0.95
    assert abs(float(torch.corrcoef(torch.stack([left, right]))[0, 1])) < 0.1


def test_log_uniform_numbers_have_a_uniform_logarithm(generator):
    draws = log_uniform_draws((20000,), 10.0, 100.0, generator).log10()
    assert float(draws.min()) >= 1.0
    assert float(draws.max()) <= 2.0
    assert float(draws.mean()) == pytest.approx(1.5, abs=0.01)
    assert float(draws.std()) == pytest.approx(1 / math.sqrt(12), abs=0.01)
