"""How a state evolves, in a few numbers: phases of its longest waves, and coefficients of a law fitted to its frames.

Phases. With a and b the coefficients of a wave in the last frame and in the one before, three numbers say by which
angle and factor it changed, all in [-1, 1] and Lipschitz with a constant of the order of 1 / eps:

    2 Re(a conj b) / n,   2 Im(a conj b) / n,   (|a|^2 - |b|^2) / n,     n = |a|^2 + |b|^2 + 2 eps^2

The law, for changes that are small between frames and for terms that multiply fields:

    u(t) - u(t - dt)  ~  - a D u - b D(u^2) + c D^2 u     for each field u, along each axis

tested with the lowest waves phi_k instead of differentiated: <phi_k, D f> = -<phi_k', f>. With all waves and pairs of
frames as equations G w = d, right-hand sides taken between the two frames, w = (G'G + eps^2)^-1 G'd. Speeds, wave
speeds and viscosities are such coefficients, whatever the state, its units (fields are at unit scale) and its grid.
Since |w| <= |d| / (2 eps), and G and d are integrals of the fields and of their products against smooth waves, w is
bounded and Lipschitz on every bounded set of histories, with constants that do not depend on the cells.
Fields are averaged over the other axes first, because flux through walls or around a period adds nothing. Waves are
those of a period where an axis has one; else cosines for phases, and sines, which vanish at the ends, for the law.
Shapes: history `(batch, history, *space, field)`; all numbers `(batch, num_coefficients)`.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.axis import Axis, as_like, kept
from spectrakan.nn.execution import as_one

WAVES = 4
"""Waves that test the law along an axis."""
TERMS = 3
"""Terms of the law."""
PHASES = 2
"""Waves whose phases are taken along an axis."""
FAINT = 0.03
"""Size eps below which a wave's phase counts for less, for fields at unit scale."""
EPSILON = 0.003
"""Ridge eps of the law, for fields at unit scale."""


def num_coefficients(num_fields: int, num_axes: int) -> int:
    """Numbers that `dynamics` gives.

    >>> num_coefficients(1, 1), num_coefficients(3, 2)
    (9, 54)
    """
    return num_axes * num_fields * (TERMS + 3 * PHASES)


def dynamics(
    history: Float[Tensor, "batch history *space field"], axes: Sequence[Axis]
) -> Float[Tensor, "batch numbers"]:
    """Law and phases along each axis, `(batch, num_coefficients)`, from at least two frames."""
    both = torch.stack([history, history.square()], dim=-1)
    found = []
    for dim, axis in enumerate(axes):
        along = _marginal(both, axes, dim)
        found += [fitted_law(along, axis), phases(along[:, -2:, ..., 0], axis)]
    return torch.cat(found, dim=1)


def phases(pair: Float[Tensor, "batch 2 n field"], axis: Axis) -> Float[Tensor, "batch numbers"]:
    """The three numbers of each wave and field, `(batch, 3 * PHASES * fields)`; cosines have no angle."""
    products = (torch.einsum("kn,bhnf->bhkf", waves, pair) for waves in _phase_waves(axis, pair))
    return turns(*(axis.summed(part) for part in products)).flatten(1)


@as_one
def turns(real: Float[Tensor, "batch 2 k field"], imaginary: Float[Tensor, "batch 2 k field"]) -> Tensor:
    """The three numbers of the file's head from coefficients before and now: `(batch, 3, k, field)`."""
    (b, a), (d, c) = real.unbind(1), imaginary.unbind(1)
    now, before = a.square() + c.square(), b.square() + d.square()
    size = now + before + 2 * FAINT**2
    return torch.stack([2 * (a * b + c * d) / size, 2 * (c * b - a * d) / size, (now - before) / size], dim=1)


def _marginal(terms: Tensor, axes: Sequence[Axis], dim: int) -> Tensor:
    """Means over all axes but one: `(batch, history, n, ...)`."""
    for other in reversed(range(len(axes))):
        if other != dim:
            weights = axes[other].weights.to(terms.dtype).to(terms.device)
            terms = axes[other].summed(torch.tensordot(terms, weights, dims=([2 + other], [0])))
    return terms


def fitted_law(both: Float[Tensor, "batch history n field 2"], axis: Axis) -> Float[Tensor, "batch numbers"]:
    """The coefficients (a, b, c) of each field along one axis, `(batch, 3 * fields)`; `both`: fields and squares."""
    waves, slopes, squares = _test_waves(axis, both)
    values = axis.summed(torch.einsum("kn,bhnf->bhkf", waves, both[..., 0]))
    fluxes = axis.summed(torch.einsum("kn,bhnft->bhkft", slopes, both))
    curvature = values * squares[:, None]
    terms = torch.cat([fluxes, curvature[..., None]], dim=-1)
    # Means of neighbouring frames; all pairs of frames and waves are equations, `(batch, pairs * k, ..)`.
    columns = ((terms[:, 1:] + terms[:, :-1]) / 2).flatten(1, 2)
    return ridge(columns, values.diff(dim=1).flatten(1, 2)).flatten(1)


@as_one
def ridge(columns: Float[Tensor, "batch rows field n"], change: Float[Tensor, "batch rows field"]) -> Tensor:
    """Give w = (G'G + eps^2)^-1 G'd of every field, `(batch, field, n)`."""
    gram = (columns[..., :, None] * columns[..., None, :]).sum(1)
    right = (columns * change[..., None]).sum(1)
    shift = EPSILON**2 * torch.eye(columns.shape[-1], dtype=gram.dtype, device=gram.device)
    return solved(gram + shift, right)


def solved(matrix: Float[Tensor, "*batch n n"], right: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """The solution of small positive definite systems, by elimination in plain operations that every backend has."""
    rows = torch.cat([matrix, right[..., None]], dim=-1)
    others = 1 - torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for number in range(matrix.shape[-1]):
        pivot = rows[..., number : number + 1, :] / rows[..., number : number + 1, number : number + 1]
        rows = rows - rows[..., :, number : number + 1] * others[:, number : number + 1] * pivot
    diagonal = rows[..., :-1].diagonal(dim1=-2, dim2=-1)
    return rows[..., -1] / diagonal


@kept
def _phase_waves(axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cell weights of the real and imaginary parts of the longest waves, `(PHASES, n)` each."""
    order = torch.arange(1, PHASES + 1, dtype=torch.float64)[:, None]
    angle = (2 if axis.periodic else 1) * math.pi * order * axis.centres
    real, imaginary = angle.cos() * axis.widths, -angle.sin() * axis.widths * float(axis.periodic)
    return as_like(real, like), as_like(imaginary, like)


@kept
def _test_waves(axis: Axis, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cell weights of phi_k `(rows, n)`, of -phi_k', and the factors of <phi_k'', u> over <phi_k, u>, `(rows,)`.

    As many sines between walls as sines and cosines around a period. Derivatives are in units of the shortest wave's.
    """
    count = WAVES if axis.periodic else 2 * WAVES
    order = torch.arange(1, count + 1, dtype=torch.float64)[:, None]
    angle = (2 if axis.periodic else 1) * math.pi * order * axis.centres
    sines, cosines, shares = angle.sin(), angle.cos(), order / count
    waves, slopes = sines, -cosines * shares
    if axis.periodic:
        waves, slopes = torch.cat([cosines, sines]), torch.cat([sines * shares, slopes])
        shares = torch.cat([shares, shares])
    squares = as_like(-shares[:, 0].square(), like)
    return as_like(waves * axis.widths, like), as_like(slopes * axis.widths, like), squares
