"""Gaussian random fields on a box, as sums of cosines with random weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spectrakan.fields import Grid


def cosine_gaussian_field(
    num_samples: int,
    shape: tuple[int, ...],
    generator: torch.Generator,
    inverse_length: float = 3.0,
    num_modes: int = 32,
) -> Tensor:
    """Centred Gaussian fields with covariance (-Laplace + tau²)^(-2) on the unit box, Neumann at its walls.

    `(num_samples, *shape)`, float64:

        u(x) = sum over k of xi_k (pi²|k|² + tau²)^(-1) prod_a c_a cos(pi k_a x_a),   xi_k ~ N(0, 1),

    k_a = 0..num_modes - 1, c_a = sqrt(2) or 1 for k_a = 0 (the constant k = 0 is left out), at the cell
    centres. The weights are drawn before the cells, so the same generator gives the same field on every grid.

    >>> field = cosine_gaussian_field(2, (8, 6), torch.Generator().manual_seed(0))
    >>> tuple(field.shape)
    (2, 8, 6)
    """
    device = generator.device
    modes = torch.arange(num_modes, dtype=torch.float64, device=device)
    squares = torch.zeros((num_modes,) * len(shape), dtype=torch.float64, device=device)
    for axis in range(len(shape)):
        squares = squares + (math.pi * modes).square().reshape(-1, *[1] * (len(shape) - axis - 1))
    spread = torch.where(squares > 0, 1 / (squares + inverse_length**2), 0.0)
    size = (num_samples, *squares.shape)
    field = spread * torch.randn(size, generator=generator, dtype=torch.float64, device=device)
    norm = torch.full_like(modes, math.sqrt(2.0))
    norm[0] = 1.0
    for centres in Grid.uniform(shape).coordinates:
        cosines = norm * torch.cos(math.pi * centres.to(device)[:, None] * modes)
        # Contract the first mode axis and append its space axis, so that the axes come out in order.
        field = torch.tensordot(field, cosines, dims=([1], [1]))
    return field
