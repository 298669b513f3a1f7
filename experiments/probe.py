"""What the token knows: how well its numbers predict the parameters of a sample.

    R^2 = 1 - sum (p - predicted p)^2 / sum (p - mean of p)^2     each sample predicted by a fit without its fold

`python -m experiments probe` fits ridge regressions, linear and with a Gaussian kernel, from the token and from the
summary P(u) that it is made of to the parameters, on development samples, for the whole model of every family that
has weights (`results/<scale>/probe.json`). Where parameters are given, both contain them, and R^2 is near 1.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from experiments.archive import Archive
from experiments.datasets import Datasets
from experiments.families.catalog import family_of
from experiments.trials import TABLE as TRIALS
from spectrakan.errors import ShapeError
from spectrakan.fields import Trajectories
from spectrakan.models import from_pretrained
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.report.table import Column, Row, Table
from spectrakan.storage import write_text_atomically

Array = npt.NDArray[np.float64]
Kernel = Literal["linear", "gaussian"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
FILE = "probe.json"
PROBED = ("spectrakan", "default", "whole")
"""Model, variant and label of the runs that are probed, in the table of families or among the trials."""
SOURCES = ("token", "summary")
FOLDS = 5
PENALTIES = tuple(10.0**power for power in range(-8, 3))
"""Ridge penalties over the mean of the kernel's diagonal; the best by leave-one-out errors is taken."""
WIDTHS = (0.5, 1.0, 2.0, 4.0)
"""Widths of the Gaussian kernel over the median distance of two samples."""


def explained(features: Array, targets: Array, kernel: Kernel = "linear") -> Array:
    """R^2 of each target `(samples, targets)` predicted from features `(samples, numbers)`, by folds.

    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> explained(x, x @ np.array([[1.0, 2.0], [3.0, -1.0]])).round(6).tolist()
    [1.0, 1.0]
    """
    if len(features) != len(targets) or len(targets) < 2 * FOLDS:
        raise ShapeError(
            f"need as many features as targets, {2 * FOLDS} or more; got {len(features)}, {len(targets)}"
        )
    predicted = np.empty_like(targets)
    for fold in range(FOLDS):
        held = np.arange(len(targets)) % FOLDS == fold
        predicted[held] = _predict(features[~held], targets[~held], features[held], kernel)
    left = np.square(targets - predicted).sum(0)
    found: Array = 1 - left / np.square(targets - targets.mean(0)).sum(0)
    return found


def _predict(features: Array, targets: Array, asked: Array, kernel: Kernel) -> Array:
    """Kernel ridge regression; penalty and width by the leave-one-out error of each target.

    With K = V diag(e) V^T and penalty a, the fit is y = V diag(e / (e + a)) V^T (targets), and the error at a sample
    of the fit without it is its error over 1 minus the sample's own weight.
    """
    centre, scale = features.mean(0), features.std(0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    train, test, mean = (features - centre) / scale, (asked - centre) / scale, targets.mean(0)
    errors, answers = [], []
    for of in _kernels(train, kernel):
        values, vectors = np.linalg.eigh(of(train, train))
        values = values.clip(min=0.0)
        seen, cross = vectors.T @ (targets - mean), of(test, train) @ vectors
        for penalty in PENALTIES:
            damped = values + penalty * max(values.mean(), 1e-300)
            own = np.square(vectors) @ (values / damped)
            fitted = vectors @ ((values / damped)[:, None] * seen)
            errors.append(np.square((targets - mean - fitted) / (1 - own[:, None]).clip(min=1e-9)).sum(0))
            answers.append(mean + cross @ (seen / damped[:, None]))
    best = np.argmin(errors, axis=0)
    return np.stack([answers[choice][:, number] for number, choice in enumerate(best)], axis=1)


def _kernels(train: Array, kernel: Kernel) -> list[Callable[[Array, Array], Array]]:
    if kernel == "linear":
        return [lambda a, b: a @ b.T]
    distances = _squared_distances(train, train)
    median = float(np.median(distances[np.triu_indices(len(train), 1)]))
    scales = [2 * width**2 * max(median, 1e-12) for width in WIDTHS]
    return [partial(_gaussian, scale) for scale in scales]


def _gaussian(scale: float, a: Array, b: Array) -> Array:
    found: Array = np.exp(-_squared_distances(a, b) / scale)
    return found


def _squared_distances(a: Array, b: Array) -> Array:
    found: Array = (np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2 * a @ b.T).clip(min=0.0)
    return found


def described(model: SpectraKAN, data: Trajectories) -> dict[str, Array]:
    """Token and summary of the first window of every sample; the operator receives the parameters it was given."""
    signature, grid = model.signature, data.grid
    token_part = model.global_token
    if token_part is None:
        raise ShapeError("this model has no token to probe")
    found: dict[str, list[Array]] = {name: [] for name in SOURCES}
    values, params = np.asarray(data.values), np.asarray(data.params)
    with torch.no_grad():
        for part in np.array_split(np.arange(len(values)), -(-len(values) // 64)):
            x = torch.as_tensor(values[part, : signature.history], dtype=torch.float32)
            given = torch.as_tensor(params[part], dtype=torch.float32) if signature.num_params else None
            history, units = model.normalized(x, given)
            raw = token_part.raw_summary(history, units, model.axes(history, grid))
            for name, numbers in (("token", model.token(x, given, grid)), ("summary", raw)):
                found[name].append(numbers.double().numpy())
    return {name: np.concatenate(parts) for name, parts in found.items()}


def measure_probe(archive: Archive, tell: Callable[[str], None] = print) -> dict[str, Any]:
    """Probe every run that has weights, and keep the numbers beside the records."""
    path = archive.folder / FILE
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    for record in (record for table in ("families", TRIALS) for record in archive.records(table)):
        details, folder = record["details"], archive.kept_run(record)
        case = details["case"]
        family = family_of(case)
        probed = (record["model"], record["variant"], details["label"]) == PROBED
        if family is None or not probed or not folder.best.is_dir():
            continue
        # The hidden case has the samples of the given one, without their parameters.
        data = Datasets(archive).development(case.removesuffix("_hidden").removesuffix("_given") + "_given")
        model = from_pretrained(folder.best)
        if data is None or not isinstance(model, SpectraKAN):
            continue
        targets = np.asarray(data.params, dtype=np.float64)
        scores = {
            source: {
                kernel: dict(zip(data.param_names, explained(numbers, targets, kernel).tolist(), strict=True))
                for kernel in KERNELS
            }
            for source, numbers in described(model, data).items()
        }
        name = f"{record['table']}-s{record['seed']}"
        found.setdefault(case, {})[name] = {"samples": data.num_samples, **scores}
        tell(f"{case} {name}: R² of the token, linear: {_words(scores['token']['linear'])}")
        write_text_atomically(path, json.dumps(found, indent=1, sort_keys=True) + "\n")
    return found


def _words(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in scores.items())


def tables(archive: Archive) -> list[Table]:
    """R^2 of every parameter of every family that was probed, means over runs."""
    path = archive.folder / FILE
    if not path.is_file():
        return []
    rows = []
    for case, runs in json.loads(path.read_text()).items():
        for parameter in next(iter(runs.values()))["token"]["linear"]:
            cells = tuple(
                f"{statistics.fmean(run[source][kernel][parameter] for run in runs.values()):.3f}"
                for source in SOURCES
                for kernel in KERNELS
            )
            rows.append(Row(f"{case}: {parameter}", (*cells, str(len(runs))), ranked=False))
    names = [f"{source}, {kernel}" for source in SOURCES for kernel in KERNELS]
    columns = tuple(Column(name, "neither") for name in (*names, "runs"))
    note = "R² of parameters predicted from the token, and from the summary it is made of, on development samples."
    return [Table("What the token knows of the parameters", columns, tuple(rows), (note,), corner="parameter")]
