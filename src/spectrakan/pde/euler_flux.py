"""The ideal gas in one dimension: its states and the flux between two of them.

d/dt (rho, m, E) + d/dx (m, m v + p, (E + p) v) = 0,  m = rho v,  E = p / (gamma - 1) + rho v^2 / 2

Shape legend: `(3, ...)`, the variables first, or three tensors `(...)`: primitive states are (density,
velocity, pressure), conserved ones (density, momentum, energy).
"""

from __future__ import annotations

import torch
from torch import Tensor

Gas = tuple[Tensor, Tensor, Tensor]
"""Three variables of one state, or three fluxes, each of any one shape."""


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
    density, momentum, energy = conserved.unbind(0)
    velocity = momentum / density
    pressure = (gamma - 1.0) * (energy - 0.5 * momentum * velocity)
    return torch.stack([density, velocity, pressure])


def sound_speed(density: Tensor, pressure: Tensor, gamma: float) -> Tensor:
    """Sound speed c = sqrt(gamma p / rho); NaN where the state is not physical."""
    return (density / pressure).mul_(1.0 / gamma).rsqrt_()


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
