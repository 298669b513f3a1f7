"""Compressible Navier-Stokes in one dimension, an ideal gas with viscosity and without heat conduction.

d rho/dt + d(rho v)/dx = 0
rho (dv/dt + v dv/dx) = -dp/dx + d/dx (mu dv/dx),   mu = 4 eta / 3 + zeta
d/dt (e + rho v^2 / 2) + d/dx [(p + e + rho v^2 / 2) v - mu v dv/dx] = 0,   e = p / (gamma - 1)

on (-1, 1). The paper's mu is a constant; PDEBench's files were made with rho mu in its place
(`viscosity="density_weighted"`). Shape legend: fields `(batch, cells, 3)` = density, velocity, pressure.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec
from spectrakan.numerics.finite_volume import pad_ghost_cells, refine_cells
from spectrakan.numerics.random_field import MultiModeField, log_uniform_draws
from spectrakan.numerics.resample import block_mean
from spectrakan.numerics.time_integration import advance_to_frames
from spectrakan.pde.equation import Equation, NotNegative
from spectrakan.pde.gas_scheme import GasScheme, to_conserved, to_primitive

BOUNDS = (-1.0, 1.0)
_WAVES = MultiModeField(length=BOUNDS[1] - BOUNDS[0], num_modes=3, window_probability=0.5)
_REFERENCE_CELLS = 1024
_CELLS_AT_ONCE = 31_000
"""Arrays of this size stay in cache, and torch does not split their short sums over threads."""


@settings
class CNS1DParameters:
    """Physics and numerics of `cns1d`; the defaults are the task's."""

    eta: NotNegative = 0.01
    """Shear viscosity."""
    zeta: NotNegative = 0.01
    """Bulk viscosity."""
    viscosity: Literal["dynamic", "density_weighted"] = "dynamic"
    """Whether eta and zeta are dynamic (the paper's equation) or multiplied by density (PDEBench's files)."""
    gamma: Annotated[float, Field(gt=1)] = 5.0 / 3.0
    """Ratio of specific heats."""
    boundary: Literal["periodic", "outflow"] = "periodic"
    """What happens at both ends."""
    min_cells: Count = 256
    """The solver divides cells until it has this many, and averages its conserved variables back.

    With the defaults 256 leave errors of 0.6 % in density, 1.9 % in velocity and 0.2 % in pressure (relative
    L2), 512 a quarter of that at three times the cost."""
    courant: Annotated[float, Field(gt=0, le=0.5)] = 0.5
    """Cells that the fastest wave may cross in a step."""


def sample(
    num_samples: int, resolution: tuple[int, ...], parameters: CNS1DParameters, generator: torch.Generator
) -> Tensor:
    """Draw initial states `(num_samples, cells, 3)`; one seed gives the same functions at every resolution.

    rho = b + m U with U a `MultiModeField` scaled to [0, 1] and b, m log-uniform on [1, 10]; p likewise on
    [10, 100]; v an unscaled field.
    """
    (cells,) = resolution
    edges = torch.linspace(*BOUNDS, cells + 1, dtype=torch.float64, device=generator.device)
    centres = (edges[1:] + edges[:-1]) / 2
    density = _positive_field(num_samples, centres, 1.0, 10.0, generator)
    pressure = _positive_field(num_samples, centres, 10.0, 100.0, generator)
    velocity = _WAVES.draw(centres, num_samples, generator)
    return torch.stack([density, velocity, pressure], -1)


def solve(initial: Tensor, times: Sequence[float], parameters: CNS1DParameters) -> Tensor:
    """States at the given times: `(batch, cells, 3)` -> `(batch, len(times), cells, 3)`, float64.

    `GasScheme` on at least `min_cells` cells. The initial cells are divided with limited linear profiles of the
    conserved variables, whose averages are the given cells; frames are averages of conserved variables.
    `eta` and `zeta` may be tensors `(batch,)`.

    >>> rest = torch.tensor([1.0, 0.0, 1.0]).expand(1, 8, 3).clone()
    >>> rest[:, 4:, 2] = 0.5  # less pressure on the right
    >>> moving = solve(rest, [0.1], CNS1DParameters(boundary="outflow"))[0, 0]
    >>> bool(moving[3:5, 1].min() > 0)  # so the gas beside the jump moves to the right
    True
    """
    if initial.ndim != 3 or initial.shape[-1] != 3:
        found = tuple(initial.shape)
        raise ShapeError(f"expected states (batch, cells, 3) = density, velocity, pressure, got {found}")
    if not bool((initial[..., 0::2] > 0.0).all()):
        raise ConfigError("initial states must have positive density (field 0) and pressure (2)")
    cells = initial.shape[1]
    factor = -(-parameters.min_cells // cells)
    scheme = GasScheme(
        cell_width=(BOUNDS[1] - BOUNDS[0]) / (cells * factor),
        gamma=parameters.gamma,
        viscosity=4.0 * parameters.eta / 3.0 + parameters.zeta,
        density_weighted=parameters.viscosity == "density_weighted",
        boundary=parameters.boundary,
        courant=parameters.courant,
    )
    fine = to_conserved(initial.to(torch.float64).permute(2, 1, 0), parameters.gamma)
    if factor > 1:
        flat = fine.repeat_interleave(factor, 1)
        fine = refine_cells(pad_ghost_cells(fine, 1, parameters.boundary), 1, factor)
        # Where divided cells would have a negative pressure, all parts of the cell keep its average.
        lowest = to_primitive(fine, parameters.gamma)[2].reshape(-1, factor, fine.shape[-1]).amin(1)
        fine = torch.where((lowest > 0.0).repeat_interleave(factor, 0), fine, flat)
    pool = max(1, _CELLS_AT_ONCE // (cells * factor))
    frames = advance_to_frames(fine.contiguous(), times, scheme.take_step, scheme.stable_step, axis=2, pool=pool)
    averages = block_mean(frames, -1, factor).movedim(2, 0)
    return to_primitive(averages, parameters.gamma).movedim(0, -1).contiguous()


def _positive_field(num_samples: int, centres: Tensor, low: float, high: float, generator: torch.Generator) -> Tensor:
    """Draw b + m U with U scaled to [0, 1] by its range on a fixed fine grid, the same for any grid."""
    reference = torch.linspace(*BOUNDS, _REFERENCE_CELLS, dtype=torch.float64, device=centres.device)
    shape = _WAVES.draw_scaled(centres, reference, num_samples, generator, constant=0.0)
    scale = log_uniform_draws((num_samples, 1), low, high, generator)
    lowest = log_uniform_draws((num_samples, 1), low, high, generator)
    return lowest + scale * shape


EQUATION = Equation(
    name="cns1d",
    summary="Compressible Navier-Stokes in 1D: waves and shocks of a viscous ideal gas",
    fields=(
        FieldSpec(name="density", positive=True),
        FieldSpec(name="velocity"),
        FieldSpec(name="pressure", positive=True),
    ),
    bounds=(BOUNDS,),
    boundary=("periodic",),
    resolution=(128,),
    times=tuple(index / 20 for index in range(21)),
    history=10,
    parameters=CNS1DParameters,
    sample=sample,
    solve=solve,
    batched_parameters=("eta", "zeta"),
)
