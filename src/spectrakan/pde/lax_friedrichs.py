"""Lax-Friedrichs steps of the shallow water equations between reflecting walls.

Shapes inside this file: a state is `(3, B, nx, ny)` with mass rho and the momenta rho v1 and rho v2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spectrakan.errors import SpectraKANError

Ratio = tuple[float, float]
"""Time step over cell width along both axes."""


def lax_friedrichs_step(state: Tensor, ratio: Ratio, gravity: float) -> Tensor:
    """One step of all cells, differentiable.

        q_ij <- sum over both axes of (q/4 + r F/2)_{i-1} + (q/4 - r F/2)_{i+1},    r = dt/dx:

    a quarter of each cell moves to every neighbour; what meets a wall comes back with its normal momentum
    reversed, so mass is kept to rounding. A cell hears nothing of itself, so the two colours of a
    chequerboard meet only at the walls: late, nearly still frames show that pattern.
    """
    velocity = state[1:] / state[0]
    pressure = (0.5 * gravity) * state[0] ** 2
    later = torch.zeros_like(state)
    for axis in (0, 1):
        push = torch.zeros_like(state)
        push[1 + axis] = pressure
        flux = 0.5 * ratio[axis] * (state * velocity[axis] + push)
        ahead, back = 0.25 * state + flux, 0.25 * state - flux
        along, last = axis + 2, state.shape[axis + 2] - 1
        mirror = torch.ones_like(state[:, :1, :1, :1])
        mirror[1 + axis] = -1.0
        from_before = [mirror * back.narrow(along, 0, 1), ahead.narrow(along, 0, last)]
        from_after = [back.narrow(along, 1, last), mirror * ahead.narrow(along, last, 1)]
        later = later + torch.cat(from_before, along) + torch.cat(from_after, along)
    return later


class SteppedInPlace:
    """The same step without new memory at every step, several times as fast; `state` is stepped in place."""

    def __init__(self, state: Tensor, gravity: float) -> None:
        self.state, self.gravity = state, gravity
        self._later, self._quarter, self._flux, self._ahead = (torch.empty_like(state) for _ in range(4))
        self._velocity = torch.empty_like(state[1:])
        self._pressure = torch.empty_like(state[0])

    def step(self, ratio: Ratio) -> None:
        """Advance the state by one step."""
        state, later = self.state, self._later
        torch.mul(state, 0.25, out=self._quarter)
        torch.div(state[1:], state[0], out=self._velocity)
        torch.mul(state[0], state[0], out=self._pressure)
        later.zero_()
        for axis in (0, 1):
            ahead, back = self._moved(axis, 0.5 * ratio[axis])
            along, last = axis + 2, state.shape[axis + 2] - 1
            later.narrow(along, 1, last).add_(ahead.narrow(along, 0, last))
            later.narrow(along, 0, last).add_(back.narrow(along, 1, last))
            first_wall, last_wall = back.narrow(along, 0, 1), ahead.narrow(along, last, 1)
            first_wall[1 + axis].neg_()
            last_wall[1 + axis].neg_()
            later.narrow(along, 0, 1).add_(first_wall)
            later.narrow(along, last, 1).add_(last_wall)
        self.state, self._later = later, state

    def _moved(self, axis: int, half: float) -> tuple[Tensor, Tensor]:
        """What each cell sends forward and backward along an axis, `half` being r/2."""
        torch.mul(self.state, self._velocity[axis].mul_(half), out=self._flux)
        self._flux[1 + axis].add_(self._pressure, alpha=0.5 * self.gravity * half)
        torch.add(self._quarter, self._flux, out=self._ahead)
        return self._ahead, torch.sub(self._quarter, self._flux, out=self._flux)


def check_stable(state: Tensor, ratio: Ratio, gravity: float) -> None:
    """Refuse a state whose waves cross more than half a cell per step along an axis."""
    celerity = (gravity * state[0]).sqrt()
    for momentum, step in zip(state[1:], ratio, strict=True):
        courant = float(((momentum / state[0]).abs() + celerity).max()) * step
        if not courant <= 0.5:
            raise SpectraKANError(
                f"Lax-Friedrichs needs waves that cross at most 0.5 cells a step, got {courant:.3g}; "
                "use a smaller solver_step or gravity"
            )
