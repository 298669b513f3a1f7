"""Drift of means: known shares, and equations of means that are found."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.archive import Archive
from experiments.mean_drift import FILE, MeanDrift, mean_share, tables
from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories


def logistic(samples: int, seed: int, wave: float = 0.0) -> Trajectories:
    """u(x, t) = m(t) + wave t sin(2 pi x), with m_{n+1} = m_n + 0.1 m_n (1 - m_n)."""
    draws = np.random.default_rng(seed)
    means = [draws.uniform(0.1, 0.9, samples)]
    for _ in range(10):
        means.append(means[-1] + 0.1 * means[-1] * (1 - means[-1]))
    x, times = (np.arange(16) + 0.5) / 16, np.arange(11) / 10
    values = np.stack(means, 1)[..., None] + wave * times[:, None] * np.sin(2 * np.pi * x)
    return Trajectories.from_arrays(values[..., None], fields=("u",), times=times, boundary=("periodic",))


def test_an_equation_of_the_mean_is_found():
    drift = MeanDrift(logistic(40, 0))
    assert drift.rmse(logistic(20, 1), history=3) < 1e-12
    assert mean_share(logistic(20, 1)) == pytest.approx(1.0)


def test_what_is_no_mean_stays_in_the_error():
    """A wave that grows by w a frame is missed: w times the frames ahead over root 2; its share is left out."""
    wavy, wave = logistic(50, 2, wave=0.5), 0.05
    ahead = np.arange(1, 9)
    expected = wave * np.sqrt(np.square(ahead).mean() / 2)
    assert MeanDrift(logistic(40, 0)).rmse(wavy, history=3) == pytest.approx(expected, rel=1e-9)
    change = np.diff(np.asarray(logistic(50, 2).values)[:, :, 0, 0], axis=1)
    assert mean_share(wavy) == pytest.approx(1 / (1 + wave**2 / 2 / np.square(change).mean()), rel=1e-6)


def test_conserved_means_have_no_share():
    data = generate("cns1d", 3, 32, frames=3)
    kept = data.only_fields(("density",))
    assert mean_share(kept) < 1e-20


def test_steady_problems_are_refused():
    with pytest.raises(ConfigError, match="no two frames"):
        mean_share(generate("darcy2d", 1, 16))


def test_measured_shares_are_shown(archive: Archive):
    archive.folder.mkdir(parents=True)
    assert tables(archive) == []
    entry = {"seed": 777, "samples": 10, "mean_share": 0.0125, "rmse": 0.5}
    (archive.folder / FILE).write_text(json.dumps({"droplet2d": entry}))
    (table,) = tables(archive)
    (row,) = table.rows
    assert (row.label, row.cells[0], row.cells[1].value) == ("droplet2d", "1.25 %", 0.5)
