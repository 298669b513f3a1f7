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
from typing import Literal

import torch
from torch import Tensor, nn

from spectrakan.nn.execution import force_fp32
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
            numbers = self.transport(token).T.unflatten(0, (-1, self.bases.count("fourier"), 2, self.width))
            start, factors = 0, []
            for modes, layers in groupby(self.modes):  # all layers of a branch together
                size = len(list(layers))
                if not modes:
                    factors += [()] * size
                    continue
                for layer in transported(numbers[start : start + size], modes):
                    by_axis = iter(layer)
                    factors.append(tuple(next(by_axis) if basis == "fourier" else None for basis in self.bases))
                start += size
        return [Condition(*film, moved) for film, moved in zip(films, factors, strict=True)]


def transported(numbers: Tensor, modes: int) -> Tensor:
    """Factors `(.., modes, 2, channel, batch)` of shifts and dampings, given unbounded, `(.., 2, channel, batch)`."""
    shift, damping = (GAIN * numbers).unsqueeze(-4).unbind(-3)
    shift, damping = FARTHEST * shift.tanh(), STRONGEST / 2 * (1 + (damping + FAINT).tanh())
    order = frequencies("fourier", modes).to(numbers)[:, None, None]
    size = torch.exp(-damping * (order / max(1, modes - 1)).square())
    angle = -2 * math.pi * order * shift
    return torch.stack([size * angle.cos(), size * angle.sin()], dim=-3)
