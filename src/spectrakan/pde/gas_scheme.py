"""One step of viscous gas flow in one dimension: MUSCL-Hancock with HLLC between two halves of viscosity.

d/dt (rho, m, E) + d/dx (m, m v + p, (E + p) v) = viscosity,  m = rho v,  E = p / (gamma - 1) + rho v^2 / 2

Shape legend: states are conserved variables (density, momentum, energy) `(3, cells, samples)`, so that neighbours in
space are whole rows in memory and a time step per sample broadcasts from the right. The three variables are processed
one by one: arrays then stay in cache, and below the size from which torch splits each small sum over threads.
Primitive variables are (density, velocity, pressure).
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spectrakan.errors import SpectraKANError
from spectrakan.numerics.finite_volume import mc_slope, pad_ghost_cells
from spectrakan.numerics.tridiagonal import RingFactors, factor_ring, levels_needed, solve_ring

Gas = tuple[Tensor, Tensor, Tensor]
"""Three variables of one state, or three fluxes, each of any one shape."""

_SUBSTEPS = 4
"""Steps of equal size between two measurements of the fastest wave."""
_FACE_FRACTION = 0.1
"""Density and pressure at a face never fall below this fraction of the cell's."""
_COUPLING = 1e-11
"""Couplings between velocities weaker than this are dropped from the solve; fluxes still conserve."""
_STIFF = 0.5
"""Largest dt mu / (2 rho dx^2) of the midpoint rule, which multiplies the shortest wave by -1/3 there."""
_GAMMA = 1.0 - 0.5**0.5
"""Diagonal of the L-stable two-stage Runge-Kutta method of second order."""
_REPAIRS = 3
_HALVINGS = 6


@dataclass(frozen=True)
class GasScheme:
    """Second order in space and time, conservative, and positive in density and pressure.

    `viscosity` is 4 eta / 3 + zeta, one number or `(samples of the batch,)`: dynamic, or multiplied by the
    density of the face if `density_weighted`.
    """

    cell_width: float
    gamma: float
    viscosity: float | Tensor
    density_weighted: bool
    boundary: Literal["periodic", "outflow"]
    courant: float

    def stable_step(self, state: Tensor) -> Tensor:
        """Time of `_SUBSTEPS` steps that take the fastest wave `courant` cells far each: `(samples,)`."""
        density, velocity, pressure = _primitive(state, self.gamma)
        sound = (density / pressure).mul_(1.0 / self.gamma).rsqrt_()  # sqrt(gamma p / rho)
        fastest = sound.add_(velocity.abs_()).amax(0)
        return _SUBSTEPS * self.courant * self.cell_width / fastest

    def take_step(self, state: Tensor, step: Tensor, members: Tensor) -> Tensor:
        """Strang splitting V(h/2) H(h) V(h) ... V(h) H(h) V(h/2) in `_SUBSTEPS` steps h, inner halves joined.

        `step` `(samples,)` is the time of all of them together, for each sample its own; `members` `(samples,)`
        are the indices of the samples in the batch.
        """
        short = step / _SUBSTEPS
        viscosity = self.viscosity[members] if isinstance(self.viscosity, Tensor) else self.viscosity
        viscous = bool(torch.as_tensor(viscosity).any())
        if viscous:
            state = self.diffuse(state, 0.5 * short, viscosity)
        for index in range(_SUBSTEPS):
            state = self.transport(state, short)
            if viscous:
                state = self.diffuse(state, short if index + 1 < _SUBSTEPS else 0.5 * short, viscosity)
        return state

    def transport(self, state: Tensor, step: Tensor, halvings: int = 0) -> Tensor:
        """The inviscid part; cells that would lose their positivity are repeated at first order.

        First-order HLLC is positive up to a Courant number of 1/2 in the speeds of its own waves. These may
        exceed the speeds in the cells, which fix the step: if a cell still fails, the step is halved.
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
                "density or pressure do not stay positive at first order with steps 64 times shorter; "
                "the gas is close to vacuum: use a finer grid or a less extreme initial state"
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
            floor = centres[index] * _FACE_FRACTION
            for faces in (lower, upper):
                torch.maximum(faces[index], floor, out=faces[index])
        before = upper[0][:-1], upper[1][:-1], upper[2][:-1]
        after = lower[0][1:], lower[1][1:], lower[2][1:]
        moved, ratio = torch.empty_like(state), step / self.cell_width
        for index, flux in enumerate(hllc_flux(before, after, self.gamma)):
            torch.sub(flux[:-1], flux[1:], out=moved[index]).mul_(ratio).add_(state[index])
        return moved

    def diffuse(self, state: Tensor, step: Tensor, viscosity: float | Tensor) -> Tensor:
        """The viscous part: d/dt m = d/dx (mu dv/dx), d/dt E = d/dx (mu v dv/dx), density constant.

        The implicit midpoint rule where it damps every wave well, else an L-stable method: over a stiff step the
        midpoint rule turns short waves around instead of damping them.
        """
        density = state[0]
        # What multiplies mu at the face after each cell: 1 or the density there; 0 at the end of an open line.
        weights = (density + density.roll(-1, 0)).mul_(0.5) if self.density_weighted else torch.ones_like(density)
        if self.boundary != "periodic":
            weights[-1] = 0.0
        weights.mul_(step * (viscosity / self.cell_width**2))
        strength = 0.5 * weights.amax(0) / density.amin(0)
        stiff = strength > _STIFF
        if not bool(stiff.any()):
            return self._midpoint(state, weights)
        if bool(stiff.all()):
            return self._damped(state, weights)
        result = torch.empty_like(state)
        for chosen, method in ((~stiff, self._midpoint), (stiff, self._damped)):
            result[:, :, chosen] = method(state[:, :, chosen], weights[:, chosen])
        return result

    def _midpoint(self, state: Tensor, weights: Tensor) -> Tensor:
        """(rho - dt/2 L) w = m for the velocity w half-way, then both fluxes from w.

        Momentum and energy are conserved, and the lost kinetic energy becomes heat mu (dw/dx)^2 >= 0 in the two
        cells at a face, so pressure never falls.
        """
        density, momentum, _ = state.unbind(0)
        middle = solve_ring(self._factors(density, 0.5 * weights), momentum)
        return _add_stress(state, _jump(middle).mul_(weights), middle)

    def _damped(self, state: Tensor, weights: Tensor) -> Tensor:
        """Two stages (rho - g dt L) w_1 = m, (rho - g dt L) w_2 = m + (1 - g) dt L w_1, g = 1 - 1/sqrt(2).

        Second order, and a wave of any length is damped. Momentum and energy are conserved. Heat is positive in
        total, not in each cell: a sample whose pressure would not stay positive takes implicit Euler steps,
        (rho - dt L) w = m, for which it is.
        """
        density, momentum, _ = state.unbind(0)
        factors = self._factors(density, _GAMMA * weights)
        first = _jump(solve_ring(factors, momentum)).mul_((1.0 - _GAMMA) * weights)
        second = solve_ring(factors, momentum + first - first.roll(1, 0))
        stress = first.add_(_jump(second).mul_(_GAMMA * weights))
        later = momentum + stress - stress.roll(1, 0)
        result = _add_stress(state, stress, (momentum + later).div_(2.0 * density))
        failed = (~_is_positive(result).all(0)).nonzero().squeeze(1)
        if failed.numel():
            part, links = state[:, :, failed], weights[:, failed]
            velocity = solve_ring(self._factors(part[0], links), part[1])
            result[:, :, failed] = _add_stress(part, _jump(velocity).mul_(links), velocity)
        return result

    def _factors(self, density: Tensor, coupling: Tensor) -> RingFactors:
        """The matrix rho - L of a stage, eliminated as far as its couplings matter."""
        diagonal = (density + coupling).add_(coupling.roll(1, 0))
        strongest = float((coupling.amax(0) / density.amin(0)).max())
        even = self.boundary == "periodic" and not self.density_weighted
        ratio = strongest / (1.0 + (2.0 if even else 1.0) * strongest)
        return factor_ring(diagonal, coupling, num_levels=levels_needed(ratio, tolerance=_COUPLING))


def _jump(velocity: Tensor) -> Tensor:
    """Difference over the face after each cell."""
    return velocity.roll(-1, 0).sub_(velocity)


def _add_stress(state: Tensor, stress: Tensor, velocity: Tensor) -> Tensor:
    """The state after the impulse `stress` at the face after each cell, which does work at the face's velocity."""
    work = (velocity.roll(-1, 0) + velocity).mul_(0.5).mul_(stress)
    result = torch.empty_like(state)
    result[0] = state[0]
    torch.add(state[1], stress, out=result[1]).sub_(stress.roll(1, 0))
    torch.add(state[2], work, out=result[2]).sub_(work.roll(1, 0))
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
    """Whether density and pressure are positive everywhere; faster than a map of where."""
    return float(state[0].amin()) > 0.0 and float(_internal_energy(state).amin()) > 0.0


def to_conserved(primitive: Tensor, gamma: float) -> Tensor:
    """(density, velocity, pressure) -> (density, momentum, energy), both `(3, ...)`.

    >>> to_conserved(torch.tensor([2.0, 3.0, 4.0]), 1.5)
    tensor([ 2.,  6., 17.])
    """
    density, velocity, pressure = primitive.unbind(0)
    momentum = density * velocity
    energy = pressure / (gamma - 1.0) + 0.5 * momentum * velocity
    return torch.stack([density, momentum, energy])


def to_primitive(conserved: Tensor, gamma: float) -> Tensor:
    """(density, momentum, energy) -> (density, velocity, pressure), both `(3, ...)`.

    >>> to_primitive(torch.tensor([2.0, 6.0, 17.0]), 1.5)
    tensor([2., 3., 4.])
    """
    return torch.stack(_primitive(conserved, gamma))


def hllc_flux(left: Gas, right: Gas, gamma: float) -> Gas:
    """HLLC flux of mass, momentum and energy through faces between primitive states.

    Outer waves at S_L = min(v) - max(c) and S_R = max(v) + max(c), which bound the true ones and keep first
    order steps positive; the contact at S_M = (p_R - p_L + a_L v_L - a_R v_R) / (a_L - a_R) with
    a = rho (S - v). The face lies in the state between the upwind outer wave and the contact,
    rho* = a / (S - S_M), p* = p + a (S_M - v), E* = ((S - v) E - p v + p* S_M) / (S - S_M),
    or outside of both waves where the flow is supersonic.
    """
    density_l, velocity_l, pressure_l = left
    density_r, velocity_r, pressure_r = right
    # rsqrt: torch takes sqrt from MKL, which starts its own threads for every short array.
    sound = torch.minimum(density_l / pressure_l, density_r / pressure_r).mul_(1.0 / gamma).rsqrt_()
    speed_l = torch.minimum(velocity_l, velocity_r).sub_(sound)
    speed_r = torch.maximum(velocity_l, velocity_r).add_(sound)
    inflow_l = (speed_l - velocity_l).mul_(density_l)
    inflow_r = (speed_r - velocity_r).mul_(density_r)
    contact = (pressure_r - pressure_l).addcmul_(inflow_l, velocity_l)
    contact.addcmul_(inflow_r, velocity_r, value=-1.0).div_(inflow_l.sub_(inflow_r))

    # 1 takes the left side, 0 the right: lerp is exact at both and twice as fast as where.
    from_left = contact.sign().clamp_min_(0.0)
    density = torch.lerp(density_r, density_l, from_left)
    velocity = torch.lerp(velocity_r, velocity_l, from_left)
    pressure = torch.lerp(pressure_r, pressure_l, from_left)
    speed = torch.lerp(speed_r, speed_l, from_left)
    relative, gap = speed - velocity, speed.sub_(contact)
    energy = (density * velocity).mul_(velocity).mul_(0.5).add_(pressure, alpha=1.0 / (gamma - 1.0))
    inflow = density * relative
    face_density = inflow / gap
    face_pressure = inflow.mul_(contact - velocity).add_(pressure)
    face_energy = relative.mul_(energy).addcmul_(pressure, velocity, value=-1.0)
    face_energy.addcmul_(face_pressure, contact).div_(gap)
    face_velocity = contact

    if float(speed_l.amax()) > 0.0 or float(speed_r.amin()) < 0.0:
        supersonic = (speed_l > 0.0) | (speed_r < 0.0)
        face_density = torch.where(supersonic, density, face_density)
        face_velocity = torch.where(supersonic, velocity, face_velocity)
        face_pressure = torch.where(supersonic, pressure, face_pressure)
        face_energy = torch.where(supersonic, energy, face_energy)
    mass = face_density.mul_(face_velocity)
    work = face_energy.add_(face_pressure).mul_(face_velocity)
    return mass, face_pressure.addcmul_(mass, face_velocity), work
