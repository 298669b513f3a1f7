"""Integrals over a tensor-product grid from per-axis weights."""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor


def equal_weights(cells: int, like: Tensor) -> Tensor:
    """The weight 1/n of each of n equal cells, in the type and on the device of `like`."""
    return torch.full((cells,), 1.0, dtype=like.dtype, device=like.device) / cells


def weighted_mean(values: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Mean over the trailing axes with the product of per-axis weights, `(..., *space)` -> `(...)`.

    One contraction an axis, last axis first: exact for constants because each axis' weights sum to one.
    """
    return reduce(lambda rest, weight: rest @ weight, reversed(weights), values)


def cell_volumes(weights: Sequence[Tensor]) -> Tensor:
    """The product of per-axis weights, one number a cell, `(*space)`."""
    return reduce(lambda left, right: left[..., None] * right, weights)
