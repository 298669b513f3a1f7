"""What the floors reach on real and simulated days, against published numbers of the same baselines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from spectrakan.data.climate import load_climate
from spectrakan.metrics import anomaly_r2


@dataclass(frozen=True)
class Scores:
    relative_l2: float
    rmse: float
    r2: float


def score(predicted: np.ndarray, truth: np.ndarray, usual: np.ndarray) -> Scores:
    """Unweighted, as the published numbers are; relative L2 by day, then the mean over days."""
    error, size = ((predicted - truth) ** 2).mean(axis=1), (truth**2).mean(axis=1)
    fields = [torch.from_numpy(np.ascontiguousarray(part))[:, None, :, None] for part in (predicted, truth)]
    cells = truth.shape[1]
    r2 = anomaly_r2(*fields, torch.from_numpy(usual)[:, None], torch.full((cells,), 1 / cells))
    return Scores(float(np.sqrt(error / size).mean()), float(np.sqrt(error.mean())), float(r2))


def stored(path: Path, *names: str) -> list[np.ndarray]:
    """Fields of a reanalysis or of a simulation, as they are stored."""
    with np.load(path) as file:
        return [file[name] for name in names]


def floors(warm: np.ndarray, heavy: np.ndarray, penalty: float, gap: int = 0) -> tuple[Scores, Scores]:
    """Mean field and ridge regression on the standardised temperature; the first half trains.

    The penalties below were found by a scan on the test halves: these tests show what the
    published numbers are of, not what an honestly tuned ridge reaches.
    """
    warm, heavy = (np.asarray(part, np.float64).reshape(len(part), -1) for part in (warm, heavy))
    half = (len(warm) - gap) // 2
    usual = heavy[:half].mean(axis=0)
    warm = (warm - warm[:half].mean(axis=0)) / warm[:half].std(axis=0)
    train, test, truth = warm[:half], warm[half + gap :], heavy[half + gap :]
    # The dual form needs a system of the size of the days, not of the grid.
    solved = np.linalg.solve(train @ train.T + penalty * np.eye(half), heavy[:half] - usual)
    predicted = (test @ train.T) @ solved + usual
    return score(np.broadcast_to(usual, truth.shape), truth, usual), score(predicted, truth, usual)


def test_era_interim(reference_data: Path):
    path = reference_data / "climate" / "eraint_daily_t850_mslp_z500_weurope_2000_2010.npz"
    mean, ridge = floors(*stored(path, "t850", "mslp"), penalty=100.0)
    assert mean.relative_l2 == pytest.approx(0.0075, abs=5e-5)
    assert mean.r2 == pytest.approx(0.0, abs=1e-6)
    assert ridge.relative_l2 == pytest.approx(0.0054, abs=5e-5)
    assert ridge.r2 == pytest.approx(0.47, abs=5e-3)


def test_ncep_over_iberia(reference_data: Path):
    path = reference_data / "climate" / "ncep1_daily_tas_ps_iberia_1991_1992.npz"
    mean, ridge = floors(*stored(path, "tas", "ps"), penalty=100.0)
    assert mean.relative_l2 == pytest.approx(0.0055, abs=5e-5)
    assert ridge.relative_l2 == pytest.approx(0.0045, abs=5e-5)
    assert ridge.r2 == pytest.approx(0.29, abs=5e-3)


def test_simulated_globe(reference_data: Path):
    # The published run is longer (1,045 days train instead of 845) and of other weather.
    warm, heavy = stored(reference_data / "climate" / "gcm_daily.npz", "temperature", "pressure")
    mean, ridge = floors(warm, heavy / 100, penalty=300.0, gap=10)
    assert mean.relative_l2 == pytest.approx(0.00713, rel=0.03)
    assert mean.rmse == pytest.approx(7.00, rel=0.03)
    assert ridge.relative_l2 == pytest.approx(0.00450, rel=0.03)
    assert ridge.rmse == pytest.approx(4.44, rel=0.03)
    assert ridge.r2 == pytest.approx(0.597, abs=0.02)


def test_shipped_days():
    days = load_climate()
    mean, ridge = floors(np.asarray(days.inputs), np.asarray(days.values), penalty=300.0)
    assert mean.relative_l2 == pytest.approx(0.0074, abs=5e-5)
    assert mean.rmse == pytest.approx(7.26, abs=5e-3)
    assert ridge.relative_l2 == pytest.approx(0.0055, abs=5e-5)
    assert ridge.rmse == pytest.approx(5.54, abs=5e-3)
    assert ridge.r2 == pytest.approx(0.42, abs=5e-3)
