"""Nonlinearities, in place where nobody needs what they overwrite."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "gelu": (F.gelu, torch.ops.aten.gelu_.default),
    "silu": (F.silu, torch.ops.aten.silu_.default),
    "relu": (F.relu, torch.ops.aten.relu_.default),
}
"""The function and its form in place, by name."""


def activate(name: str, field: Tensor) -> Tensor:
    """Apply a nonlinearity to a field that the caller gives away.

    It is overwritten, for fresh memory for each layer costs more than the arithmetic, unless gradients need the field
    as it was; a rectifier's result is enough for its gradient.
    """
    plain, in_place = ACTIVATIONS[name]
    keeps = (name != "relu" and torch.is_grad_enabled()) or torch.compiler.is_compiling()
    return plain(field) if keeps else in_place(field)
