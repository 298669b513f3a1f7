"""One step of viscous gas flow in one dimension: MUSCL-Hancock with HLLC between two halves of viscosity.

Shape legend: states are conserved variables `(3, cells, samples)`, so that neighbours in space are whole
rows in memory and a time step per sample broadcasts from the right. The three variables are worked on one by
one: arrays then stay in cache, and below the size from which torch would split each small sum over threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spectrakan.errors import SpectraKANError
from spectrakan.numerics.finite_volume import mc_slope, pad_ghost_cells
from spectrakan.numerics.tridiagonal import factor_ring, levels_needed, solve_ring
from spectrakan.pde.euler_flux import Gas, hllc_flux, sound_speed

_SUBSTEPS = 4
"""Steps of equal size between two looks at the fastest wave."""
_FACE_SHARE = 0.1
"""Density and pressure at a face never fall below this share of the cell's."""
_COUPLING = 1e-11
"""Links between velocities weaker than this are dropped from the solve; fluxes conserve all the same."""
_REPAIRS = 3
_HALVINGS = 6


@dataclass(frozen=True)
class GasScheme:
    """Second order in space and time, conservative, and positive in density and pressure.

    `viscosity` is 4 eta / 3 + zeta: dynamic, or multiplied by the density of the face if `density_weighted`.
    """

    cell_width: float
    gamma: float
    viscosity: float
    density_weighted: bool
    boundary: Literal["periodic", "outflow"]
    courant: float

    def stable_step(self, state: Tensor) -> Tensor:
        """Time of `_SUBSTEPS` steps that take the fastest wave `courant` cells far each: `(samples,)`."""
        density, velocity, pressure = _primitive(state, self.gamma)
        fastest = sound_speed(density, pressure, self.gamma).add_(velocity.abs_()).amax(0)
        return _SUBSTEPS * self.courant * self.cell_width / fastest

    def take_step(self, state: Tensor, step: Tensor) -> Tensor:
        """Strang splitting V(h/2) H(h) V(h) ... V(h) H(h) V(h/2) in `_SUBSTEPS` steps h, inner halves joined.

        `step` `(samples,)` is the time of all of them together, for each sample its own.
        """
        short = step / _SUBSTEPS
        if self.viscosity > 0.0:
            state = self.diffuse(state, 0.5 * short)
        for index in range(_SUBSTEPS):
            state = self.transport(state, short)
            if self.viscosity > 0.0:
                state = self.diffuse(state, short if index + 1 < _SUBSTEPS else 0.5 * short)
        return state

    def transport(self, state: Tensor, step: Tensor, halvings: int = 0) -> Tensor:
        """The inviscid part; cells that would lose their positivity are done again at first order.

        First-order HLLC is positive up to a Courant number of 1/2 in the speeds of its own waves. These may
        pass those of the cells, by which the step was chosen: should a cell still fail, the step is halved.
        """
        moved = self._transport(state, step, None)
        if _all_positive(moved):
            return moved
        keep = torch.ones_like(state[0])
        for _ in range(_REPAIRS):
            around = pad_ghost_cells(_is_positive(moved).to(state.dtype), 0, self.boundary)
            keep.mul_(around[:-2]).mul_(around[1:-1]).mul_(around[2:])
            moved = self._transport(state, step, keep)
            if _all_positive(moved):
                return moved
        if halvings == _HALVINGS:
            raise SpectraKANError(
                "density or pressure cannot be kept positive by first order and smaller steps; "
                "check that the initial state is finite and positive"
            )
        failed = (~_is_positive(moved).all(0)).nonzero().squeeze(1)
        half = 0.5 * step[failed]
        again = self.transport(state[:, :, failed], half, halvings + 1)
        moved[:, :, failed] = self.transport(again, half, halvings + 1)
        return moved

    def _transport(self, state: Tensor, step: Tensor, keep: Tensor | None) -> Tensor:
        """U_i - dt/dx (F_{i+1/2} - F_{i-1/2}), faces predicted at dt/2; `keep` = 0 drops a cell's slope.

        Within a cell W_t = -A(W) W_x moves both face values by half a step (Hancock) before HLLC sees them.
        """
        padded = [pad_ghost_cells(field, 0, self.boundary, width=2) for field in _primitive(state, self.gamma)]
        slopes = [mc_slope(field, 0) for field in padded]
        if keep is not None:
            kept = pad_ghost_cells(keep, 0, self.boundary)
            slopes = [slope.mul_(kept) for slope in slopes]
        centres = [field[1:-1] for field in padded]
        density, velocity, pressure = centres
        changes = [velocity * slope for slope in slopes]
        changes[0].addcmul_(density, slopes[1])
        changes[1].addcdiv_(slopes[2], density)
        changes[2].addcmul_(pressure, slopes[1], value=self.gamma)
        shift = step * (-0.5 / self.cell_width)
        lower, upper = [], []
        for field, change, slope in zip(centres, changes, slopes, strict=True):
            middle = change.mul_(shift).add_(field)
            lower.append(middle.sub(slope, alpha=0.5))
            upper.append(middle.add_(slope, alpha=0.5))
        for index in (0, 2):
            floor = centres[index] * _FACE_SHARE
            for faces in (lower, upper):
                torch.maximum(faces[index], floor, out=faces[index])
        before = upper[0][:-1], upper[1][:-1], upper[2][:-1]
        after = lower[0][1:], lower[1][1:], lower[2][1:]
        moved, ratio = torch.empty_like(state), step / self.cell_width
        for index, flux in enumerate(hllc_flux(before, after, self.gamma)):
            torch.sub(flux[:-1], flux[1:], out=moved[index]).mul_(ratio).add_(state[index])
        return moved

    def diffuse(self, state: Tensor, step: Tensor) -> Tensor:
        """The viscous part: d/dt m = d/dx (mu dv/dx), d/dt E = d/dx (mu v dv/dx), density at rest.

        The implicit midpoint rule: (rho - dt/2 L) w = m for the velocity w half-way, then both fluxes from w.
        Momentum and energy are conserved, and what kinetic energy loses arrives as heat
        mu (dw/dx)^2 >= 0 in the two cells at a face, so that pressure never falls.
        """
        density, momentum, energy = state.unbind(0)
        share = step * (0.5 * self.viscosity / self.cell_width**2)
        if self.density_weighted:
            coupling = (density + density.roll(-1, 0)).mul_(0.5 * share)
        else:
            coupling = share.expand_as(density)
        closed = self.boundary == "periodic"
        if not closed:
            coupling = coupling.clone()
            coupling[-1] = 0.0
        diagonal = (density + coupling).add_(coupling.roll(1, 0))
        strongest = float((coupling.amax(0) / density.amin(0)).max())
        ratio = strongest / (1.0 + (2.0 if closed and not self.density_weighted else 1.0) * strongest)
        factors = factor_ring(diagonal, coupling, num_levels=levels_needed(ratio, tolerance=_COUPLING))
        middle = solve_ring(factors, momentum)
        after = middle.roll(-1, 0)
        stress = (after - middle).mul_(coupling).mul_(2.0)
        work = after.add_(middle).mul_(0.5).mul_(stress)
        result = torch.empty_like(state)
        result[0] = density
        torch.add(momentum, stress, out=result[1]).sub_(stress.roll(1, 0))
        torch.add(energy, work, out=result[2]).sub_(work.roll(1, 0))
        return result


def _primitive(state: Tensor, gamma: float) -> Gas:
    """Density, velocity and pressure of a conserved state, each in memory of its own."""
    density, momentum, energy = state.unbind(0)
    velocity = momentum / density
    pressure = (momentum * velocity).mul_(-0.5).add_(energy).mul_(gamma - 1.0)
    return density, velocity, pressure


def _internal_energy(state: Tensor) -> Tensor:
    """Density times internal energy, rho E - m^2 / 2, which has the sign of the pressure."""
    return (state[0] * state[2]).addcmul_(state[1], state[1], value=-0.5)


def _is_positive(state: Tensor) -> Tensor:
    """Where density and pressure are positive, `(cells, samples)`; NaN is not."""
    return (state[0] > 0.0) & (_internal_energy(state) > 0.0)


def _all_positive(state: Tensor) -> bool:
    """Whether density and pressure are positive everywhere; quicker than asking where."""
    return float(state[0].amin()) > 0.0 and float(_internal_energy(state).amin()) > 0.0
