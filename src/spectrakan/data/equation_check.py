"""Whether stored solutions solve the equation of their problem.

The solver starts from a stored frame; what it gives is compared with the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.config import build_settings
from spectrakan.data.problems import find_problem
from spectrakan.errors import SpectraKANError
from spectrakan.fields import Array, Trajectories
from spectrakan.pde.equation import Equation

SAMPLES_CHECKED = 8
"""Samples that are looked at, spread over the set."""
STARTS = (0.25, 0.5, 0.75)
"""Frames from which a sample is solved again, as shares of all its frames."""
LEAST_CHANGE = 1e-5
"""Relative change between frames below which single precision leaves nothing to compare."""

CONVENTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "cns1d": {"dynamic viscosity": {}, "PDEBench: viscosity times density": {"viscosity": "density_weighted"}},
    "darcy2d": {
        "harmonic faces, zero on the wall": {},
        "PDEBench: arithmetic faces, zero in ghost cells": {"face_mean": "arithmetic", "wall": "ghost"},
    },
}
"""Conventions under which a set may have been made, by problem; the one that fits best is reported."""


@dataclass(frozen=True)
class EquationCheck:
    """The error of a set, 0 where the equation is solved and about 1 where it is not at all.

    `unexplained`: |S(u_k) - u_{k+1}| / |u_{k+1} - u_k| with the solver S (for a steady problem
    |S(a) - u| / |u|), median over samples; `worst_sample` is where it is largest.
    """

    unexplained: float | None = None
    worst_sample: int | None = None
    samples: tuple[int, ...] = ()
    note: str = ""
    """The convention that fits best, or why there is no number."""


def check_equation(trajectories: Trajectories) -> EquationCheck:
    """Check some samples against the equation, with the constants and parameters of the set."""
    known = find_problem(trajectories.name)
    equation = None if known is None else known.equation
    if equation is None:
        return EquationCheck(note="the equation of these data is not known")
    if reason := equation_misfit(equation, trajectories):
        return EquationCheck(note=reason)
    samples = np.unique(np.linspace(0, trajectories.num_samples - 1, SAMPLES_CHECKED).astype(int)).tolist()
    found: dict[str, npt.NDArray[np.float64]] = {}
    for note, overrides in CONVENTIONS.get(equation.name, {"": {}}).items():
        try:
            rows = [_check_sample(equation, trajectories, sample, overrides) for sample in samples]
        except SpectraKANError as problem:
            return EquationCheck(note=" ".join(str(problem).split()))
        found[note] = np.array(rows)
    note, missed = min(found.items(), key=lambda item: _median(item[1]) or 0.0)
    return EquationCheck(
        unexplained=_median(missed),
        worst_sample=None if np.isnan(missed).all() else samples[int(np.nanargmax(missed))],
        samples=tuple(samples),
        note=note,
    )


def _check_sample(equation: Equation, trajectories: Trajectories, sample: int, overrides: Mapping[str, Any]) -> float:
    """Unexplained change of one sample; NaN where there is none."""
    conditions = () if trajectories.params is None else trajectories.params[sample].tolist()
    parameters = equation_parameters(equation, trajectories, conditions, overrides)
    values = _read(trajectories.values, sample)
    inputs = None if trajectories.inputs is None else _read(trajectories.inputs, sample)
    times = trajectories.times.tolist()
    if inputs is not None:
        solved = equation.solve(inputs[:, 0], times, parameters)
        return float((solved - values).norm() / values.norm())
    return _unexplained(equation, values[0], times, parameters)


def _unexplained(equation: Equation, frames: Tensor, times: list[float], parameters: Any) -> float:
    """Share of the change between frames `(time, *space, channel)` that the solver does not give."""
    spread = frames.flatten(0, -2).std(dim=0, correction=0)
    scaled = torch.where(spread > 0, spread, 1.0)
    shares = []
    for start in sorted({int(share * (len(times) - 1)) for share in STARTS}):
        before, after = frames[start] / scaled, frames[start + 1] / scaled
        change = (after - before).norm()
        if change > LEAST_CHANGE * after.norm():
            solved = equation.solve(frames[start][None], [times[start + 1] - times[start]], parameters)[0, 0]
            shares.append(float((solved / scaled - after).norm() / change))
    return float(np.median(shares)) if shares else float("nan")


def equation_parameters(
    equation: Equation, trajectories: Trajectories, conditions: Sequence[float], overrides: Mapping[str, Any]
) -> Any:
    """The equation's parameters as far as the set has them; `conditions` are those of one sample, `overrides` win."""
    numbers: dict[str, Any] = dict(trajectories.constants)
    if trajectories.grid.boundary:
        numbers["boundary"] = trajectories.grid.boundary[0]
    numbers |= dict(zip(trajectories.param_names, conditions, strict=True))
    names = {entry.name for entry in fields(equation.parameters)}
    known = {name: number for name, number in numbers.items() if name in names}
    return build_settings(equation.parameters, known | dict(overrides), where=equation.name)


def equation_misfit(equation: Equation, trajectories: Trajectories) -> str:
    """Why a set cannot be put into the equation; empty where it can."""
    have = [spec.name for spec in (*trajectories.input_fields, *trajectories.fields)]
    want = [spec.name for spec in (*equation.input_fields, *equation.fields)]
    if have != want:
        return f"the equation needs the fields {', '.join(want)}, the set has {', '.join(have)}"
    grid = trajectories.grid
    if not grid.is_uniform() or not np.allclose(grid.bounds, equation.bounds, atol=1e-3):
        return f"the equation is posed on {equation.bounds}, the set on {grid.bounds}"
    if not equation.steady and len(trajectories.times) < 2:
        return "at least 2 frames are needed, the set has 1"
    return ""


def _read(array: Array, sample: int) -> Tensor:
    return torch.from_numpy(np.array(array[sample : sample + 1], dtype=np.float64))


def _median(numbers: npt.NDArray[np.float64]) -> float | None:
    kept = numbers[np.isfinite(numbers)]
    return float(np.median(kept)) if kept.size else None
