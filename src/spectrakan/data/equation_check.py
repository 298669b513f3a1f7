"""Whether stored solutions solve the equation of their task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.config import build_settings
from spectrakan.data.catalog import TASKS
from spectrakan.errors import SpectraKANError
from spectrakan.fields import Trajectories
from spectrakan.pde.equation import Equation

SAMPLES_CHECKED = 8
"""Samples whose residual is computed, spread over the set."""

CONVENTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "cns1d": {
        "dynamic viscosity": {},
        "PDEBench: viscosity times density": {"viscosity": "density_weighted"},
    },
    "darcy2d": {
        "harmonic faces, zero on the wall": {},
        "PDEBench: arithmetic faces, zero in ghost cells": {"face_mean": "arithmetic", "wall": "ghost"},
    },
}
"""Conventions under which a set may have been made, by task; the one that fits best is reported."""


@dataclass(frozen=True)
class EquationCheck:
    """Error of the equation, relative to its terms: 0 where it is solved, about 1 where it is not at all."""

    median: float | None
    worst: float | None
    worst_sample: int | None
    samples: tuple[int, ...]
    note: str
    """The convention that fits best, or why there is no number."""


def check_equation(trajectories: Trajectories) -> EquationCheck:
    """Residual of the task's equation on some samples, with the constants and parameters of the set."""
    known = TASKS.get(trajectories.task)
    equation = None if known is None else known.equation
    if equation is None or equation.residual is None:
        return _none("the equation of these data is not known" if known is None else "no residual is known")
    if reason := _misfit(equation, trajectories):
        return _none(reason)
    samples = np.unique(np.linspace(0, trajectories.num_samples - 1, SAMPLES_CHECKED).astype(int))
    found: dict[str, npt.NDArray[np.float64]] = {}
    for note, choices in CONVENTIONS.get(equation.name, {"": {}}).items():
        try:
            rows = [_residual(equation, trajectories, int(sample), choices) for sample in samples]
        except SpectraKANError as problem:
            return _none(str(problem))
        # The median over frames: the first ones may change faster than any difference in time can follow.
        found[note] = np.median(np.array(rows), axis=1)
    note, residual = min(found.items(), key=lambda item: float(np.median(item[1])))
    if not np.isfinite(residual).all():
        return _none("the numbers are not all finite")
    return EquationCheck(
        median=float(np.median(residual)),
        worst=float(residual.max()),
        worst_sample=int(samples[residual.argmax()]),
        samples=tuple(int(sample) for sample in samples),
        note=note,
    )


def _residual(
    equation: Equation, trajectories: Trajectories, sample: int, choices: Mapping[str, Any]
) -> npt.NDArray[np.float64]:
    """Residual per frame of one sample."""
    if equation.residual is None:
        raise SpectraKANError(f"{equation.name} has no residual")
    names = {entry.name for entry in fields(equation.parameters)}
    numbers: dict[str, Any] = dict(trajectories.constants)
    if trajectories.grid.boundary:
        numbers["boundary"] = trajectories.grid.boundary[0]
    if trajectories.params is not None:
        numbers |= dict(zip(trajectories.param_names, trajectories.params[sample].tolist(), strict=True))
    known = {name: number for name, number in numbers.items() if name in names}
    parameters = build_settings(equation.parameters, known | dict(choices), where=equation.name)
    part = slice(sample, sample + 1)
    values = torch.from_numpy(np.asarray(trajectories.values[part], dtype=np.float64))
    inputs = None
    if trajectories.inputs is not None:
        inputs = torch.from_numpy(np.asarray(trajectories.inputs[part], dtype=np.float64))
    found: npt.NDArray[np.float64] = equation.residual(
        values, inputs, trajectories.times.tolist(), parameters
    )[0].numpy()
    return found


def _misfit(equation: Equation, trajectories: Trajectories) -> str:
    """Why the residual cannot be computed; empty where it can."""
    have = [spec.name for spec in (*trajectories.input_fields, *trajectories.fields)]
    want = [spec.name for spec in (*equation.input_fields, *equation.fields)]
    if have != want:
        return f"the equation needs the fields {', '.join(want)}, the set has {', '.join(have)}"
    if not trajectories.grid.is_uniform() or not np.allclose(
        trajectories.grid.bounds, equation.bounds, atol=1e-3
    ):
        return f"the equation lives on {equation.bounds}, the set on {trajectories.grid.bounds}"
    if not equation.steady and len(trajectories.times) < 3:
        return f"at least 3 frames are needed, the set has {len(trajectories.times)}"
    return ""


def _none(reason: str) -> EquationCheck:
    return EquationCheck(median=None, worst=None, worst_sample=None, samples=(), note=reason)
