"""Whether a set can be put into the equation of its problem, and with which parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from spectrakan.config import build_settings
from spectrakan.fields import Trajectories
from spectrakan.pde.equation import Equation

CONVENTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "cns1d": {"dynamic viscosity": {}, "PDEBench: viscosity times density": {"viscosity": "density_weighted"}},
    "darcy2d": {
        "harmonic faces, zero on the wall": {},
        "PDEBench: arithmetic faces, zero in ghost cells": {"face_mean": "arithmetic", "wall": "ghost"},
    },
}
"""Conventions under which a set may have been made, by problem."""


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
