"""The families of the campaign: what varies, between which values, and what an operator sees.

A family is two cases of one problem on the same trajectories. `given`: the operator receives the parameters and the
least history that determines the next frame. `hidden`: it receives three frames and no parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from experiments.families import advection_diffusion1d, burgers1d, viscous_gas1d
from spectrakan.data.problems import find_problem, register_problem

Kind = Literal["given", "hidden"]
KINDS: tuple[Kind, ...] = ("given", "hidden")
HIDDEN_HISTORY = 3
"""Frames that show what the parameters are: two increments."""


@dataclass(frozen=True)
class Family:
    """A problem and the ranges of its parameters, uniform in the numbers named."""

    problem: str
    ranges: Mapping[str, tuple[float, float]]
    data: Mapping[str, object]
    """Data settings of its cases."""
    training: Mapping[str, object]
    """Training settings of its cases at `short`, epochs aside."""
    epochs: int
    """Epochs at `short`, for about 1,000 steps."""
    given_history: int = 1
    widened: float = 0.25
    """Share of its width by which a range is widened at both ends, for samples outside of it."""
    nonlinear: bool = True
    """Whether the bars are asked of it; the linear family is a sanity check."""

    def overrides(self, kind: Kind) -> tuple[str, ...]:
        """Settings of one of its cases as texts."""
        history = self.given_history if kind == "given" else HIDDEN_HISTORY
        data = {**self.data, "params": dict(self.ranges), "history": history, "use_params": kind == "given"}
        groups = {"data": data, "training": self.training}
        return tuple(
            f"{group}.{key}={json.dumps(value)}" for group, given in groups.items() for key, value in given.items()
        )

    def outside(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Ranges in which one parameter lies below or above those of training, and the others within."""
        found = {}
        for name, (low, high) in self.ranges.items():
            more = self.widened * (high - low)
            found[f"{name}_below"] = {**self.ranges, name: (low - more, low)}
            found[f"{name}_above"] = {**self.ranges, name: (high, high + more)}
        return found


_LINE = {"num_samples": 600, "resolution": 128}
FAMILIES: dict[str, Family] = {
    # c in [1/4, 4]; nu in [0.005, 0.05], above what 512 points resolve at the largest c.
    "burgers1d": Family(
        "burgers1d", {"log_speed": (-2.0, 2.0), "log_viscosity": (-2.3, -1.3)}, _LINE, {"batch_size": 32}, 3
    ),
    # eta and zeta in [0.001, 0.1]; `cns1d` has 0.01 for both.
    "cns1d": Family(
        "viscous_gas1d",
        {"log_eta": (-3.0, -1.0), "log_zeta": (-3.0, -1.0)},
        {**_LINE, "frames": 21},
        {"batch_size": 32},
        3,
    ),
    # g from a third of the earth's to what the scheme's step allows.
    "droplet2d": Family(
        "droplet2d",
        {"gravity": (3.0, 12.0)},
        {"num_samples": 300, "resolution": 32, "frames": 20},
        {"batch_size": 4},
        1,
        given_history=3,
    ),
    "advection_diffusion1d": Family(
        "advection_diffusion1d",
        {"speed": (0.5, 2.0), "log_diffusivity": (-3.5, -1.5)},
        _LINE,
        {"batch_size": 32},
        6,
        nonlinear=False,
    ),
}
"""Families by the first part of their cases' names, such as `burgers1d_given`."""

RATES: dict[str, dict[str, float]] = {
    "burgers1d_given": {"spectrakan": 3e-3, "spectrakan/paper": 1e-2, "ffno": 3e-3},
    "burgers1d_hidden": {"spectrakan": 3e-3, "spectrakan/paper": 1e-2},
    "cns1d_given": {"spectrakan/paper": 1e-2},
    "cns1d_hidden": {"ffno": 3e-2},
    "droplet2d_given": {"ffno": 3e-3, "spectrakan/default": 1e-2, "spectrakan/paper": 3e-3},
    "droplet2d_hidden": {"ffno": 3e-3, "spectrakan/default": 1e-2, "spectrakan/paper": 3e-3},
    "advection_diffusion1d_given": {"spectrakan": 3e-2, "spectrakan/paper": 1e-2, "fno": 3e-3},
    "advection_diffusion1d_hidden": {"spectrakan": 3e-2, "spectrakan/paper": 1e-2},
}
"""Learning rates by case and model where trials found another one than the preset's best."""


def family_of(case: str) -> Family | None:
    """The family of a case such as `burgers1d_given`; None: the case is of no family.

    >>> family_of("burgers1d_hidden").problem, family_of("cns1d")
    ('burgers1d', None)
    """
    name, _, kind = case.rpartition("_")
    return FAMILIES.get(name) if kind in KINDS else None


def register_families() -> None:
    """Make the families' own equations known by name in this process."""
    for equation in (burgers1d.EQUATION, viscous_gas1d.EQUATION, advection_diffusion1d.EQUATION):
        if find_problem(equation.name) is None:
            register_problem(equation)
