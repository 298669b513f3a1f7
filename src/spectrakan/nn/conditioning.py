"""The token conditions the trunk: features and Fourier modes of every layer depend on the state of the system.

    film    h -> (1 + tanh(a)) h + tanh(b)               before a layer's nonlinearity, a and b one number a channel
    modes   c_k -> exp(tanh(a_k)) e^{i pi tanh(theta_k)} c_k    in each axial layer, for each axis and mode k

a, b and theta are affine maps of the token. They start at zero, so a fresh model ignores the token here. A phase of
mode k shifts a field by a length of its own, which is transport; amplitudes stay in [1/e, e], FiLM's scale in
[0, 2] and its shift in [-1, 1], because unbounded factors fit better and diverge in rollouts. Bases with real
coefficients have no phase, and joint layers, whose modes belong to no axis, have no factors.
Shapes: token `(batch, token)`, fields `(channel, batch, *space)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from spectrakan.numerics.fourier import Basis, is_complex, stored_modes

ConditioningKind = Literal["readout", "film", "modes", "both"]


@dataclass(frozen=True)
class Condition:
    """What one layer receives: `scale`, `shift` `(batch, width)` or None, `factors[axis]` `(batch, modes, parts)`."""

    scale: Tensor | None = None
    shift: Tensor | None = None
    factors: tuple[Tensor, ...] = ()

    def applied(self, field: Tensor) -> Tensor:
        """The field, scaled and shifted by channel."""
        if self.scale is None or self.shift is None:
            return field
        view = (*self.scale.T.shape, *[1] * (field.ndim - 2))
        return torch.addcmul(self.shift.T.view(view), self.scale.T.view(view), field)


UNCONDITIONED = Condition()


class Conditioning(nn.Module):
    """The maps of the file's head for a number of layers; `modes[layer]` is 0 for a layer without axial modes.

    `width` is the number of channels before the nonlinearity.
    """

    def __init__(
        self, token_width: int, kind: ConditioningKind, width: int, bases: Sequence[Basis], modes: Sequence[int]
    ) -> None:
        super().__init__()
        self.width = width
        self.bases, self.modes = tuple(bases), tuple(modes)
        film = kind in ("film", "both")
        numbers = sum(self._sizes()) if kind in ("modes", "both") else 0
        self.film = nn.Linear(token_width, 2 * width * len(self.modes)) if film else None
        self.turn = nn.Linear(token_width, numbers) if numbers else None
        for layer in (self.film, self.turn):
            if layer is not None:
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, token: Tensor) -> list[Condition]:
        """What each layer receives for these tokens."""
        count = len(self.modes)
        films: list[tuple[Tensor | None, Tensor | None]] = [(None, None)] * count
        if self.film is not None:
            pairs = self.film(token).unflatten(1, (count, 2, self.width)).unbind(1)
            films = [(1 + pair[:, 0].tanh(), pair[:, 1].tanh()) for pair in pairs]
        factors: list[tuple[Tensor, ...]] = [()] * count
        if self.turn is not None:
            numbers = iter(self.turn(token).tanh().split(self._sizes(), dim=1))
            factors = [tuple(_factor(next(numbers), basis) for basis in self.bases) for _ in range(count)]
            factors = [each if modes else () for each, modes in zip(factors, self.modes, strict=True)]
        return [Condition(*film, turn) for film, turn in zip(films, factors, strict=True)]

    def _sizes(self) -> list[int]:
        """Numbers for each layer and axis: amplitudes of all modes, then their phases."""
        return [
            stored_modes(basis, modes) * (2 if is_complex(basis) else 1)
            for modes in self.modes
            for basis in self.bases
        ]


def _factor(numbers: Tensor, basis: Basis) -> Tensor:
    """Factors `(batch, modes, parts)` from numbers in [-1, 1]."""
    if not is_complex(basis):
        return numbers.exp()[..., None]
    amplitude, phase = numbers.chunk(2, dim=1)
    size, angle = amplitude.exp(), math.pi * phase
    return torch.stack([size * angle.cos(), size * angle.sin()], dim=-1)
