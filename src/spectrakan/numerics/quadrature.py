"""Integrals over a tensor-product grid from per-axis weights, and sums in float64 on every device."""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor


def to_float64(tensor: Tensor) -> Tensor:
    """The same numbers in float64, on their own device if it has float64, else on the CPU.

    >>> to_float64(torch.ones(2, dtype=torch.float32)).dtype
    torch.float64
    """
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).to(torch.float64)


def weighted_mean(values: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Mean over the trailing axes with the product of per-axis weights, `(..., *space)` -> `(...)`.

    One contraction an axis, last axis first: exact for constants because each axis' weights sum to one.
    """
    return reduce(lambda rest, weight: rest @ weight, reversed(weights), values)


def cell_volumes(weights: Sequence[Tensor]) -> Tensor:
    """The product of per-axis weights, one number a cell, `(*space)`."""
    return reduce(lambda left, right: left[..., None] * right, weights)
