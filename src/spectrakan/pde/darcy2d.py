"""Steady flow through a porous medium with two permeabilities, solved exactly on its grid."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu
from torch import Tensor

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec, Grid
from spectrakan.pde.equation import Equation, Positive, per_sample


@settings
class DarcyParameters:
    """The source, the two permeabilities and how they are drawn, and the discretisation."""

    beta: float = 1.0
    """Constant source f where none is given as a field."""
    low: Positive = 0.1
    """Permeability of the tight part."""
    high: Positive = 1.0
    """Permeability of the open part."""
    num_bumps: Count = 5
    """The medium is open where a sum of so many bumps lies above its mean over the sample."""
    face_mean: Literal["harmonic", "arithmetic"] = "harmonic"
    """Permeability between two cells; the harmonic mean keeps the flux right across a jump."""
    wall: Literal["face", "ghost"] = "face"
    """Where the pressure is zero: on the wall, or in ghost cells half a cell outside it (as PDEBench did)."""

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ConfigError(f"the tight part needs the lower permeability, got {self.low} >= {self.high}")


def draw_coefficient(
    num_samples: int, shape: tuple[int, ...], parameters: DarcyParameters, generator: torch.Generator
) -> Tensor:
    """Permeability fields of two values, `(num_samples, nx, ny, 1)`, high where a sum of bumps is above its mean.

    The bumps are exp(-|x - c_i|²/s_i), centres uniform in the unit square, s_i uniform in (0, 1/2).
    The same generator gives the same media at every resolution: the functions are drawn before the cells.

    >>> drawn = draw_coefficient(2, (8, 8), DarcyParameters(), torch.Generator().manual_seed(0))
    >>> sorted(drawn.unique().tolist())
    [0.1, 1.0]
    """
    count, device = parameters.num_bumps, generator.device
    drawn = torch.rand((num_samples, count, 3), generator=generator, dtype=torch.float64, device=device)
    width = (0.5 * drawn[..., 2, None]).clamp_min(1e-12)
    factors = [
        torch.exp(-((centres.to(device) - drawn[..., axis, None]) ** 2) / width)
        for axis, centres in enumerate(Grid.uniform(shape).coordinates)
    ]
    height = torch.einsum("nbx,nby->nxy", factors[0], factors[1])
    open_part = torch.cat([part > part.mean() for part in torch.split(height, 1)])
    low, high = (drawn.new_tensor(value) for value in (parameters.low, parameters.high))
    return torch.where(open_part, high, low)[..., None]


def face_conductances(coefficient: Tensor, parameters: DarcyParameters) -> tuple[Tensor, Tensor]:
    """Flux through each face per pressure difference, over the cell width: a_face / dx² along each axis.

    `(B, nx, ny)` cells -> `(B, nx + 1, ny)` and `(B, nx, ny + 1)` faces.
    Outside the walls the pressure counts as zero; the outer faces carry how far away that zero is.
    """
    along = []
    for axis in (1, 2):
        size = coefficient.shape[axis]
        left, right = coefficient.narrow(axis, 0, size - 1), coefficient.narrow(axis, 1, size - 1)
        harmonic = parameters.face_mean == "harmonic"
        inner = 2 * left * right / (left + right) if harmonic else (left + right) / 2
        nearness = 2.0 if parameters.wall == "face" else 1.0
        ends = [nearness * coefficient.narrow(axis, index, 1) for index in (0, size - 1)]
        along.append(torch.cat([ends[0], inner, ends[1]], dim=axis) * size**2)
    return along[0], along[1]


def _solve_one(
    across: npt.NDArray[np.float64], along: npt.NDArray[np.float64], source: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Factorise the symmetric five-point matrix of one sample and solve for its source."""
    cells = np.arange(source.size).reshape(source.shape)
    pairs = [(cells[:-1], cells[1:], across[1:-1]), (cells[:, :-1], cells[:, 1:], along[:, 1:-1])]
    diagonal = across[:-1] + across[1:] + along[:, :-1] + along[:, 1:]
    rows = [cells, *(left for left, _, _ in pairs), *(right for _, right, _ in pairs)]
    columns = [cells, *(right for _, right, _ in pairs), *(left for left, _, _ in pairs)]
    values = [diagonal, *(-link for _, _, link in pairs), *(-link for _, _, link in pairs)]
    flat = [np.concatenate([part.ravel() for part in parts]) for parts in (values, rows, columns)]
    matrix = csc_array((flat[0], (flat[1], flat[2])), shape=(source.size, source.size))
    # The matrix is symmetric and diagonally dominant: no pivoting is needed, and the ordering that
    # minimises fill of A + A^T is the fastest.
    factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    solution: npt.NDArray[np.float64] = factors.solve(source.ravel())
    return solution


def solve(inputs: Tensor, times: Sequence[float], parameters: DarcyParameters) -> Tensor:
    """Pressure `(B, 1, nx, ny, 1)` of each medium: -div(a grad u) = f, u = 0 on the edge of the unit square.

    `inputs` `(B, nx, ny, 1)` is the coefficient a; a second channel, if there, is the source f(x), else
    f = beta, which may be a tensor `(B,)`. Each sample is solved by one sparse factorisation, to rounding, on the
    CPU; the result is on the device of the inputs.

    >>> medium = torch.ones(1, 16, 16, 1, dtype=torch.float64)
    >>> pressure = solve(medium, (0.0,), DarcyParameters(beta=1.0))
    >>> round(float(pressure.max()), 3)
    0.073
    """
    if inputs.shape[-1] not in (1, 2):
        raise ShapeError(
            "darcy2d takes the coefficient (B, nx, ny, 1), or coefficient and source (B, nx, ny, 2), "
            f"got {tuple(inputs.shape)}"
        )
    coefficient = inputs[..., 0]
    if not bool(((coefficient > 0) & coefficient.isfinite()).all()):
        raise ConfigError(
            "darcy2d needs a positive, finite coefficient in every cell, got values from "
            f"{float(coefficient.min()):g} to {float(coefficient.max()):g}; check the coefficient's channel"
        )
    constant = per_sample(parameters.beta, coefficient).expand_as(coefficient)
    source = inputs[..., 1] if inputs.shape[-1] == 2 else constant
    across, along = face_conductances(coefficient.double(), parameters)
    arrays = (field.detach().cpu().numpy() for field in (across, along, source.double()))
    solved = np.array([_solve_one(*system) for system in zip(*arrays, strict=True)])
    return torch.from_numpy(solved.reshape(len(inputs), 1, *coefficient.shape[1:], 1)).to(inputs.device)


EQUATION = Equation(
    name="darcy2d",
    summary="steady Darcy flow: -div(a grad u) = f on (0,1)², u = 0 on the edge; coefficient a -> pressure u",
    fields=(FieldSpec("pressure"),),
    bounds=((0.0, 1.0), (0.0, 1.0)),
    boundary=("dirichlet", "dirichlet"),
    resolution=(64, 64),
    times=(0.0,),
    history=1,
    parameters=DarcyParameters,
    sample=draw_coefficient,
    solve=solve,
    input_fields=(FieldSpec("coefficient", positive=True),),
    batched_parameters=("beta",),
)
