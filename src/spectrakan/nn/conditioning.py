"""The token conditions the trunk: features and Fourier modes of every layer depend on the state of the system.

    film        h -> (1 + tanh(a)) h + tanh(b)                        before a layer's nonlinearity
    transport   c_k -> exp(-d (k / k_max)^2) e^{-2 pi i k s} c_k      in each axial layer, along periodic axes

a, b, s and d are one number a channel (and axis), from affine maps of the token. A fresh model ignores the token
here: a, b and s start at zero and d near it. Transport moves each channel by a length s and damps its short waves,
the exact solution of u_t + s u_x = d u_xx, so that channels carry waves whose speed and decay depend on the state.
Everything is bounded, because unbounded factors fit better and diverge in rollouts: FiLM's scale in [0, 2], its shift
in [-1, 1], s in half a period, and transport only damps. Only the Fourier basis contains what it moves; along axes
with another basis, and in joint layers, whose modes belong to no axis, there is no transport.
Shapes: token `(batch, token)`, fields `(channel, batch, *space)`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.nn.axis import as_like, kept
from spectrakan.nn.execution import differentiable, force_fp32, plain_forms
from spectrakan.numerics.fourier import Basis, frequencies

ConditioningKind = Literal["readout", "film", "transport", "both"]
FARTHEST = 0.5
"""Largest shift, in lengths of the axis."""
STRONGEST = 8.0
"""Largest damping exponent of the shortest wave."""
GAIN = 0.1
"""Factor of what enters the tanh of a shift or damping: a small shift turns short waves far, so that weights which
learn as fast as all others must change it slowly."""
FAINT = -2.0
"""Argument of the tanh of a damping before training: 2 % of the strongest."""


@dataclass(frozen=True)
class Condition:
    """What one layer receives from the token.

    `scale` and `shift` `(batch, width)` or None; `factors[axis]` `(modes, 2, channel, batch)` or None.
    """

    scale: Tensor | None = None
    shift: Tensor | None = None
    factors: tuple[Tensor | None, ...] = ()

    def applied(self, field: Tensor) -> Tensor:
        """The field, scaled and shifted by channel."""
        if self.scale is None or self.shift is None:
            return field
        view = (*self.scale.T.shape, *[1] * (field.ndim - 2))
        return torch.addcmul(self.shift.T.view(view), self.scale.T.view(view), field)


UNCONDITIONED = Condition()


class Conditioning(nn.Module):
    """The maps of the file's head for a number of layers; `modes[layer]` is 0 for a layer without axial modes.

    `hidden` is the number of channels before the nonlinearity, `width` that of the field.
    """

    def __init__(
        self,
        token_width: int,
        kind: ConditioningKind,
        hidden: int,
        width: int,
        bases: Sequence[Basis],
        modes: Sequence[int],
    ) -> None:
        super().__init__()
        self.hidden, self.width, self.bases, self.modes = hidden, width, tuple(bases), tuple(modes)
        moving = self.bases.count("fourier") * sum(count > 0 for count in self.modes)
        film, transport = kind in ("film", "both"), kind in ("transport", "both") and moving
        self.film = nn.Linear(token_width, len(self.modes) * 2 * hidden) if film else None
        self.transport = nn.Linear(token_width, moving * 2 * width) if transport else None
        for layer in (self.film, self.transport):
            if layer is not None:
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    @force_fp32
    def forward(self, token: Tensor) -> list[Condition]:
        """What each layer receives for these tokens."""
        count = len(self.modes)
        films: list[tuple[Tensor | None, Tensor | None]] = [(None, None)] * count
        if self.film is not None:
            scales, shifts = self.film(token).unflatten(1, (count, 2, self.hidden)).tanh().unbind(2)
            films = list(zip((1 + scales).unbind(1), shifts.unbind(1), strict=True))
        factors: list[tuple[Tensor | None, ...]] = [()] * count
        if self.transport is not None:
            numbers = (
                self.transport(token).unflatten(1, (-1, self.bases.count("fourier"), 2, self.width)).movedim(0, 3)
            )
            start, factors = 0, []
            for modes, layers in groupby(self.modes):  # all layers of a branch together
                size = len(list(layers))
                if not modes:
                    factors += [()] * size
                    continue
                for layer in transported(numbers[start : start + size], modes).unbind():
                    by_axis = iter(layer.mT.unbind())
                    factors.append(tuple(next(by_axis) if basis == "fourier" else None for basis in self.bases))
                start += size
        return [Condition(*film, moved) for film, moved in zip(films, factors, strict=True)]


def transported(
    numbers: Float[Tensor, "*layers 2 batch channel"], modes: int
) -> Float[Tensor, "*layers modes 2 batch channel"]:
    """The factors of shifts and dampings, given unbounded."""
    if plain_forms() or not torch.is_grad_enabled():
        return plain_transported(numbers, modes)
    found: Tensor = _Transported.apply(numbers, modes)  # type: ignore[no-untyped-call]
    return found


def plain_transported(numbers: Tensor, modes: int) -> Tensor:
    """The same in plain operations."""
    shift, damping = (GAIN * numbers).unsqueeze(-4).unbind(-3)
    shift, damping = FARTHEST * shift.tanh(), STRONGEST / 2 * (1 + (damping + FAINT).tanh())
    turn, decay = _exponents(modes, numbers)
    size, angle = torch.exp(decay * damping), turn * shift
    return torch.stack([size * angle.cos(), size * angle.sin()], dim=-3)


@kept
def _exponents(modes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """What shift and damping are multiplied by in the exponent of each mode, `(modes, 1, 1)`."""
    order = frequencies("fourier", modes)[:, None, None]
    return as_like(-2 * math.pi * order, like), as_like(-(order / max(1, modes - 1)).square(), like)


class _Transported(torch.autograd.Function):
    """Forward and backward of `transported`.

    With x + iy = e^{r + ia} and its gradient (u, v), that of a is v x - u y and that of r is u x + v y; a and r are
    multiples of shift and damping.
    """

    @staticmethod
    def forward(ctx: Any, numbers: Tensor, modes: int) -> Tensor:
        found = plain_transported(numbers, modes)
        ctx.save_for_backward(numbers, found)
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        numbers, found = ctx.saved_tensors
        modes = found.shape[-4]
        if torch.is_grad_enabled():  # of second order
            return differentiable(plain_transported, gradients[0], numbers, modes)
        (u, v), (x, y) = gradients[0].unbind(-3), found.unbind(-3)
        turn, decay = (each.flatten() for each in _exponents(modes, numbers))
        by_shift = torch.einsum("k,...kbc->...bc", turn, (v * x).addcmul_(u, y, value=-1))
        by_damping = torch.einsum("k,...kbc->...bc", decay, (u * x).addcmul_(v, y))
        shift, damping = (GAIN * numbers).unbind(-3)
        by_shift *= GAIN * FARTHEST * (1 - shift.tanh().square())
        by_damping *= GAIN * STRONGEST / 2 * (1 - (damping + FAINT).tanh().square())
        return torch.stack([by_shift, by_damping], dim=-3), None
