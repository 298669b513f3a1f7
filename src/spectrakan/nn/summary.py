"""How a state evolves, in a few numbers: coefficients of a conservation law, fitted to the frames of a history.

    u_i(t) - u_i(t - dt)  ~  - sum_j a_ij D u_j - sum_{j <= l} b_ijl D(u_j u_l) + c_i D^2 u_i     along each axis

tested with the lowest waves phi_k instead of differentiated: <phi_k, D f> = -<phi_k', f>. With all waves and pairs of
frames as equations G w = d, right-hand sides taken between the two frames, w = (G'G + eps^2)^-1 G'd. Speeds, wave
speeds and viscosities are such coefficients, whatever the state, its units (fields are at unit scale) and its grid.
Since |w| <= |d| / (2 eps), and G and d are integrals of the fields and of their products against smooth waves, w is
bounded and Lipschitz on every bounded set of histories, with constants that do not depend on the cells.
Fields are averaged over the other axes first, because flux through walls or around a period adds nothing.
Shapes: history `(batch, history, *space, field)`; the fitted numbers `(batch, axes * fields * terms)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.axis import Axis, kept

WAVES = 8
"""Waves that test the equation along an axis."""
EPSILON = 0.003
"""Ridge eps of the fit, for fields at unit scale."""


def num_coefficients(num_fields: int, num_axes: int) -> int:
    """Numbers that `fitted_dynamics` gives.

    >>> num_coefficients(1, 1), num_coefficients(3, 2)
    (3, 60)
    """
    return num_axes * num_fields * (num_fields + num_fields * (num_fields + 1) // 2 + 1)


def fitted_dynamics(
    history: Float[Tensor, "batch history *space field"], axes: Sequence[Axis]
) -> Float[Tensor, "batch numbers"]:
    """The coefficients w of all axes and fields, `(batch, num_coefficients)`; at least two frames."""
    fields = history.shape[-1]
    first, second = torch.triu_indices(fields, fields, device=history.device)
    products = history.index_select(-1, first) * history.index_select(-1, second)
    terms = torch.cat([history, products], dim=-1)
    return torch.cat([_along(_marginal(terms, axes, dim), fields, axis) for dim, axis in enumerate(axes)], dim=1)


def _marginal(terms: Tensor, axes: Sequence[Axis], dim: int) -> Tensor:
    """Means over all axes but one: `(batch, history, n, term)`."""
    for other in reversed(range(len(axes))):
        if other != dim:
            weights = axes[other].weights.to(terms.dtype).to(terms.device)
            terms = torch.tensordot(terms, weights, dims=([2 + other], [0]))
    return terms


def _along(terms: Tensor, fields: int, axis: Axis) -> Tensor:
    """The fit along one axis: `(batch, history, n, term)` -> `(batch, fields * (terms + 1))`."""
    waves, slopes, squares = _test_waves(axis, terms)
    values = torch.einsum("kn,bhnf->bhkf", waves, terms[..., :fields])
    fluxes = _between(torch.einsum("kn,bhnf->bhkf", slopes, terms))
    curvature = _between(values * squares[:, None])
    change = values.diff(dim=1).flatten(1, 2)
    columns = fluxes[..., None, :].expand(-1, -1, fields, -1)
    columns = torch.cat([columns, curvature[..., None]], dim=-1)
    gram = torch.einsum("bkfi,bkfj->bfij", columns, columns)
    right = torch.einsum("bkfi,bkf->bfi", columns, change)
    ridge = EPSILON**2 * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    return solved(gram + ridge, right).flatten(1)


def _between(values: Tensor) -> Tensor:
    """Means of neighbouring frames, all pairs as equations: `(batch, history, k, f)` -> `(batch, pairs * k, f)`."""
    return ((values[:, 1:] + values[:, :-1]) / 2).flatten(1, 2)


def solved(matrix: Float[Tensor, "*batch n n"], right: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """The solution of small positive definite systems, by elimination in plain operations that every backend has."""
    rows = torch.cat([matrix, right[..., None]], dim=-1)
    for number in range(matrix.shape[-1]):
        pivot = rows[..., number : number + 1, :] / rows[..., number : number + 1, number : number + 1]
        factor = rows[..., :, number : number + 1].clone()
        factor[..., number, :] = 0
        rows = rows - factor * pivot
    diagonal = rows[..., :-1].diagonal(dim1=-2, dim2=-1)
    return rows[..., -1] / diagonal


@kept
def _test_waves(axis: Axis, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cell weights of phi_k `(rows, n)`, of -phi_k', and the factors of <phi_k'', u> over <phi_k, u>, `(rows,)`.

    Waves of a period where the axis has one, else sines, which vanish at the ends. Derivatives are in units of those
    of the shortest wave.
    """
    order = torch.arange(1, WAVES + 1, dtype=torch.float64)[:, None]
    angle = (2 if axis.periodic else 1) * math.pi * order * axis.centres
    sines, cosines, share = angle.sin(), angle.cos(), order / WAVES
    waves, slopes, shares = sines, -cosines * share, share
    if axis.periodic:
        waves, slopes = torch.cat([cosines, sines]), torch.cat([sines * share, -cosines * share])
        shares = torch.cat([share, share])
    squares = -shares[:, 0].square()
    first, second, third = (
        each.to(like.dtype).to(like.device) for each in (waves * axis.widths, slopes * axis.widths, squares)
    )
    return first, second, third
