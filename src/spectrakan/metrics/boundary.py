"""Errors in the outermost cells."""

from __future__ import annotations

import torch
from torch import Tensor


def boundary_mean_square(values: Tensor, volumes: Tensor) -> Tensor:
    """Mean square over the cells on the 2d faces of the domain: `(B, T, *space, C)` to `(B, T, C)`.

        Σ_faces Σ_{x on face} w(x) v(x)² / Σ_faces Σ_{x on face} w(x)

    A cell on an edge lies on two faces and counts for both. The ends of a periodic axis are faces like
    others. With equal cells this is PDEBench's sum over 2 (1D), 2nx + 2ny (2D) or 2nxny + 2nynz + 2nznx (3D).

    >>> error = torch.tensor([1.0, 9.0, 9.0, 3.0]).reshape(1, 1, 4, 1)
    >>> boundary_mean_square(error, torch.full((4,), 0.25)).item()
    5.0
    """
    total = values.new_zeros((values.shape[0], values.shape[1], values.shape[-1]))
    weight = volumes.new_zeros(())
    for axis in range(volumes.ndim):
        for end in (0, -1):
            face = values.select(2 + axis, end)
            share = volumes.select(axis, end)
            total = total + torch.einsum("btnc,n->btc", _cells(face), share.flatten())
            weight = weight + share.sum()
    return total / weight


def _cells(face: Tensor) -> Tensor:
    """Squares of a face with its axes joined to one, which a face of a line lacks."""
    square = face.square()
    return square.unsqueeze(2) if square.ndim == 3 else square.flatten(2, -2)
