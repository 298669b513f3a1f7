"""How a layer is executed: its precision under autocast, and its plain form under function transforms."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import handle_torch_function

Call = TypeVar("Call", bound=Callable[..., Any])
Field = Float[Tensor, "channel batch *space"]
"""A field as the layers of networks take and give it."""


def transformed() -> bool:
    """Whether `torch.func` (vmap, jvp, grad) or `torch.export` is at work: layers then take plain forms."""
    return torch.compiler.is_exporting() or bool(torch._C._are_functorch_transforms_active())


def observed() -> bool:
    """Whether a mode sees every torch function, as a certificate's does: fused layers then take plain forms."""
    return bool(torch._C._len_torch_function_stack())


def plain_forms() -> bool:
    """Whether fused layers take their plain forms: while a program is traced, transformed or observed."""
    return torch.compiler.is_compiling() or transformed() or observed()


def as_one(function: Call) -> Call:
    """A function that such a mode sees as one operation, which can then have a bound of its own."""

    @functools.wraps(function)
    def call(*given: Any) -> Any:
        if not torch.compiler.is_compiling() and observed() and not transformed():
            return handle_torch_function(call, given[:1], *given)
        return function(*given)

    return call  # type: ignore[return-value]


def fused(function: type[torch.autograd.Function], *given: Any) -> Any:
    """Apply a layer with a gradient of its own; where none is wanted its forward pass keeps nothing."""
    return function.apply(*given) if torch.is_grad_enabled() else function.forward(None, *given)


def force_fp32(forward: Call) -> Call:
    """A module's `forward` in float32 under autocast: for sums over all cells, splines and softmax over space.

    Torch does the same with Fourier transforms: 8 bits of mantissa are too few for sums of thousands of terms. The
    first argument after `self` is a tensor; tensors of half precision among the arguments are widened.
    """

    @functools.wraps(forward)
    def call(self: Any, first: Tensor, *others: Any) -> Any:
        kind = first.device.type
        if not torch.is_autocast_enabled(kind):
            return forward(self, first, *others)
        with torch.autocast(kind, enabled=False):
            return forward(self, *(_widened(value) for value in (first, *others)))

    return call  # type: ignore[return-value]


def _widened(value: Any) -> Any:
    """Float32 for tensors of half precision, also in a list of them; everything else unchanged."""
    if isinstance(value, list | tuple):
        return [_widened(item) for item in value]
    half = isinstance(value, Tensor) and value.dtype in (torch.bfloat16, torch.float16)
    return value.float() if half else value


def differentiable(plain: Callable[..., Tensor], gradient: Tensor, *given: Any) -> tuple[Tensor | None, ...]:
    """The gradients of a fused layer by its plain form, which autograd can differentiate again."""
    # Views, because one argument may have been computed from another.
    given = tuple(each.view_as(each) if isinstance(each, Tensor) else each for each in given)
    wanted = [each for each in given if isinstance(each, Tensor) and each.requires_grad]
    found = iter(torch.autograd.grad(plain(*given), wanted, gradient, create_graph=True))
    return tuple(next(found) if isinstance(each, Tensor) and each.requires_grad else None for each in given)
