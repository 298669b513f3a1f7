"""How much of a problem is the drift of spatial means, and how well an ordinary differential equation predicts it.

    share = sum (mean of du)^2 / sum mean of du^2                 over samples, frames and fields at unit scale
    m(t + dt) = m(t) + p(m(t)),   u(t + dt) = u(t) + p(m(t))      p: cubic polynomials of the means of all fields

A problem with a share near 1 asks for a few numbers, and the equation, fitted by least squares, is the score that a
network has to beat there. `python -m experiments means` fits it to one half of the development samples and scores it
on the other (`results/<scale>/means.json`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.archive import Archive
from experiments.cells import case_settings
from experiments.datasets import Datasets
from experiments.scales import CASES, DEVELOPMENT_SEED, case_named
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories
from spectrakan.report.table import Column, Row, Score, Table
from spectrakan.storage import write_text_atomically

Array = npt.NDArray[np.float64]
DEGREE = 3
FILE = "means.json"


def mean_share(data: Trajectories) -> float:
    """Share of squared increments between frames that is the increment of the spatial mean, over all fields.

    Fields count in units of their standard deviation; cells by their volume.
    """
    values, weights = _evolving(data)
    changes = np.diff(values / values.std(axis=tuple(range(values.ndim - 1))), axis=1).reshape(
        *values.shape[:1], values.shape[1] - 1, -1, values.shape[-1]
    )
    means = np.einsum("sthf,h->stf", changes, weights)
    return float(np.square(means).sum() / np.einsum("sthf,h->", np.square(changes), weights))


class MeanDrift:
    """The equation of the file's head, fitted to trajectories."""

    def __init__(self, data: Trajectories) -> None:
        means = _means(data)
        before, change = means[:, :-1].reshape(-1, means.shape[-1]), np.diff(means, axis=1)
        self.centre, self.scale = before.mean(0), before.std(0) + 1e-12
        columns = self._columns(before)
        solution = np.linalg.lstsq(columns, change.reshape(-1, means.shape[-1]), rcond=None)[0]
        self.weights: Array = solution.astype(np.float64)

    def rollout(self, means: Array, horizon: int) -> Array:
        """Means `(samples, fields)` to those of the next frames, `(samples, horizon, fields)`."""
        frames = []
        for _ in range(horizon):
            means = means + self._columns(means) @ self.weights
            frames.append(means)
        return np.stack(frames, axis=1)

    def rmse(self, data: Trajectories, history: int) -> float:
        """RMSE of the last seen frame moved by the predicted means, by the `exact` convention."""
        values, weights = _evolving(data)
        start, means = values[:, history - 1], _means(data)[:, history - 1]
        moved = self.rollout(means, values.shape[1] - history) - means[:, None]
        spread = moved.reshape(*moved.shape[:2], *[1] * (values.ndim - 3), moved.shape[-1])
        errors = np.square(start[:, None] + spread - values[:, history:])
        flat = errors.reshape(*errors.shape[:2], -1, errors.shape[-1])
        return float(np.sqrt(np.einsum("sthf,h->stf", flat, weights).mean(1)).mean())

    def _columns(self, means: Array) -> Array:
        unit = (means - self.centre) / self.scale
        powers = [
            np.prod(unit[:, list(chosen)], axis=1)
            for degree in range(DEGREE + 1)
            for chosen in combinations_with_replacement(range(unit.shape[1]), degree)
        ]
        return np.stack(powers, axis=1)


def measure_means(archive: Archive, cases: Sequence[str], tell: Callable[[str], None] = print) -> dict[str, Any]:
    """Share and score of each case that evolves and is generated; kept beside the records."""
    path = archive.folder / FILE
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    for case in cases or CASES:
        problem, data = case_named(case).problem, None
        if not problem.steady:
            data = Datasets(archive).development(case)
        if data is None:
            continue
        half = data.num_samples // 2
        history = case_settings(archive.scale, case).data.history or problem.history
        fitted, scored = data.select(slice(half)), data.select(slice(half, None))
        found[case] = {
            "seed": DEVELOPMENT_SEED,
            "samples": scored.num_samples,
            "mean_share": mean_share(data),
            "rmse": MeanDrift(fitted).rmse(scored, history),
        }
        share, error = found[case]["mean_share"], found[case]["rmse"]
        tell(f"{case}: share of the mean {share:.4f}, its equation's rmse {error:.4g}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, json.dumps(found, indent=1, sort_keys=True) + "\n")
    return found


def tables(archive: Archive) -> list[Table]:
    """Shares and scores of the equation, as far as they were measured."""
    path = archive.folder / FILE
    if not path.is_file():
        return []
    found = json.loads(path.read_text())
    rows = tuple(
        Row(case, (f"{100 * entry['mean_share']:.2f} %", Score(entry["rmse"])), ranked=False)
        for case in CASES
        if (entry := found.get(case)) is not None
    )
    columns = (Column("share of the mean", "neither"), Column("RMSE of its equation", "neither"))
    note = (
        "Share of squared increments that is the increment of spatial means, and RMSE of an ordinary differential "
        "equation of the means, fitted to one half of the development samples and scored on the other."
    )
    return [Table("How much of a problem is its spatial mean", columns, rows, (note,), corner="case")]


def _evolving(data: Trajectories) -> tuple[Array, Array]:
    if data.steady or len(data.times) < 2:
        raise ConfigError(f"{data.name or 'this set'} has no two frames: only fields that evolve have a drift")
    volumes = np.asarray(data.grid.volumes(), dtype=np.float64).reshape(-1)
    return np.asarray(data.values, dtype=np.float64), volumes / volumes.sum()


def _means(data: Trajectories) -> Array:
    """Spatial means, `(samples, time, fields)`."""
    values, weights = _evolving(data)
    means: Array = np.einsum("sthf,h->stf", values.reshape(*values.shape[:2], -1, values.shape[-1]), weights)
    return means
