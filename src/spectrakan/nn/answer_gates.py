"""Gates on the modes of the answer: how much of each wavelength is believed.

    (G v)(x) = g_far v(x) + sum_{|k| < K} (g(|k|) - g_far) v_k e_k(x),     k over all axes jointly, |k| its length

A network reads its answer out cell by cell and errs in all wavelengths alike, whether true answers have them or not:
pressure is smooth where permeability jumps, the mass in a closed box stays what it is. The gates are Wiener's filter,
one for each length of k and each field. Before training they are made from the answers of the training data (`fit`):
    g(|k|) = S(|k|) / (S(|k|) + e²),     closed where that is below `CLOSED`,
S the mean square of their coefficients in an orthonormal basis and e the error that the network is expected to have,
both relative to the answers' own size, so that noise as large as the answer has S = 1 throughout. A gate that is
nearly closed must close, for the network does not feel what it says behind it and says more and more. The mean over
the domain, whose errors add up frame by frame where others run apart, is kept as it is where S(0) < `CONSERVED`.
Gates that were learnt as weights closed for good while the network was still bad, and did worse.

After training the errors are known, and open gates are set to what would have been best for the answers v to which
the truth is w (`refit`), of which errors that add up take part with their sums over the frames of a rollout:
    g(|k|) = <w, v>_|k| / <v, v>_|k|,     at least 0, at most 1.
More than 1 would help one step and let rollouts grow.

Waves are those that suit the edges: Fourier where the axis is periodic, sines where the field is held, cosines else.
Shapes: answers `(field, batch, *space)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, AxisTransform, axis_transform
from spectrakan.nn.precision import unmixed
from spectrakan.numerics.float64 import to_float64
from spectrakan.numerics.fourier import Basis, frequencies, is_complex, stored_modes
from spectrakan.numerics.sampling import along_axis

WAVES_OF_BOUNDARY: dict[str, Basis] = {"periodic": "fourier", "dirichlet": "sine"}
CLOSED = 0.05
"""Gates below this are shut."""
CONSERVED = 1e-3
"""A mean that moves less than this share (squared) of what a mode of noise would is taken as conserved."""


class AnswerGates(nn.Module):
    """The file's equation; before `fit` every gate is one and nothing changes."""

    gate: Tensor
    order: Tensor

    def __init__(self, num_fields: int, num_modes: int, boundary: Sequence[str], expected_error: float) -> None:
        super().__init__()
        self.num_fields, self.num_modes, self.expected_error = num_fields, num_modes, expected_error
        self.bases = tuple(WAVES_OF_BOUNDARY.get(kind, "cosine") for kind in boundary)
        order, far = _length_order(self.bases, num_modes)
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("gate", torch.ones(num_fields, far + 1))

    @unmixed
    def forward(
        self, answer: Float[Tensor, "field batch *space"], axes: Sequence[Axis]
    ) -> Float[Tensor, "field batch *space"]:
        """The answer as far as it is believed."""
        transforms = self._transforms(axes, answer)
        waves = _analysed(answer, transforms)
        far = self.gate[:, -1].view(-1, *[1] * (answer.ndim - 1))
        kept = waves * (self.gate[:, self._order_of(waves.shape[2:])].unsqueeze(1) - far)
        for place, transform in enumerate(transforms, start=2):
            kept = along_axis(transform.synthesis, kept, place)
        return torch.addcmul(kept, far, answer)

    @torch.no_grad()
    def fit(self, answers: Iterable[tuple[Tensor, Sequence[Axis]]]) -> None:
        """Wiener's gates for these answers `(field, batch, *space)` of unit size, each on its axes."""
        power = torch.zeros(self.gate.shape, dtype=torch.float64)
        count = torch.zeros_like(power[0])
        for answer, axes in answers:
            exact = to_float64(answer).cpu()[None]
            power += self._products(exact, exact, axes)
            count += exact.shape[2] * self._mode_count(axes)
        seen = count > 0.5  # others are too short for the cells
        spectrum = power.clamp_min(0) / count.clamp_min(1)
        wiener = spectrum / (spectrum + self.expected_error**2)
        if self._has_mean:
            wiener[:, 0] *= spectrum[:, 0] >= CONSERVED
        self.gate.copy_(torch.where(seen, wiener * (wiener >= CLOSED), to_float64(self.gate).cpu()))

    @torch.no_grad()
    def refit(self, answered: Iterable[tuple[Tensor, Tensor, Sequence[Axis]]], *, adding: bool) -> None:
        """Gates that suit a trained network: its ungated answers and the true ones, `(step, field, batch, *space)`.

        `adding` says that a rollout adds up its answers, step after step.
        """
        agreement, power = (torch.zeros(self.gate.shape, dtype=torch.float64) for _ in range(2))
        for said, true, axes in answered:
            v, w = to_float64(said).cpu(), to_float64(true).cpu()
            shared, own = self._products(w, v, axes), self._products(v, v, axes)
            if adding and self._has_mean:
                v, w = v.cumsum(0), w.cumsum(0)
                shared[:, 0], own[:, 0] = self._products(w, v, axes)[:, 0], self._products(v, v, axes)[:, 0]
            agreement, power = agreement + shared, power + own
        old = to_float64(self.gate).cpu()
        best = (agreement / power.clamp_min(torch.finfo(torch.float64).tiny)).clamp(0, 1)
        self.gate.copy_(torch.where((old > 0) & (power > 0), best, old))

    @property
    def _has_mean(self) -> bool:
        """Whether the first mode is the mean over the domain."""
        return "sine" not in self.bases

    def _products(self, first: Tensor, second: Tensor, axes: Sequence[Axis]) -> Float[Tensor, "field gate"]:
        """Inner products of fields `(step, field, batch, *space)`, summed over all that share a gate."""
        first, second = (part.transpose(0, 1).flatten(1, 2) for part in (first, second))
        transforms = self._transforms(axes, first)
        waves = _analysed(first, transforms) * _analysed(second, transforms)
        norms = _squared_norms(self.bases, waves.shape[2:])
        near = first[0, 0].numel() * (norms * waves).sum(1).flatten(1)
        products = torch.zeros(self.gate.shape, dtype=torch.float64)
        products.index_add_(1, self._order_of(waves.shape[2:]).cpu().flatten(), near)
        # What these modes leave over is far.
        products[:, -1] += (first * second).flatten(1).sum(1) - near.sum(1)
        return products

    def _mode_count(self, axes: Sequence[Axis]) -> Float[Tensor, " gate"]:
        """How many modes each gate has on these axes."""
        rows = [transform.analysis.shape[0] for transform in self._transforms(axes, self.gate)]
        there = (_squared_norms(self.bases, rows) > 0).to(torch.float64)
        count = torch.zeros(self.gate.shape[1], dtype=torch.float64)
        count.index_add_(0, self._order_of(rows).cpu().flatten(), there.flatten())
        count[-1] += math.prod(axis.cells for axis in axes) - there.sum()
        return count

    def _transforms(self, axes: Sequence[Axis], like: Tensor) -> list[AxisTransform]:
        return [
            axis_transform(axis, basis, self.num_modes, like) for axis, basis in zip(axes, self.bases, strict=True)
        ]

    def _order_of(self, rows: Sequence[int]) -> Tensor:
        """The gate of every mode of as many rows along the axes, those that the cells resolve."""
        return self.order[tuple(slice(count) for count in rows)]


def _analysed(answer: Tensor, transforms: Sequence[AxisTransform]) -> Tensor:
    """Coefficients along all axes, `(field, batch, *rows)`."""
    for place, transform in enumerate(transforms, start=2):
        answer = along_axis(transform.analysis, answer, place)
    return answer


def _length_order(bases: Sequence[Basis], num_modes: int) -> tuple[Int[Tensor, "*rows"], int]:
    """Which gate each joint mode has, by its length |k| in steps of the waves' own spacing; and the last one, far."""
    # In half cycles, of which Fourier waves have even numbers alone.
    step = 2 if all(basis == "fourier" for basis in bases) else 1
    squares, reach = torch.zeros((), dtype=torch.float64), []
    for basis in bases:
        along = 2 * frequencies(basis, stored_modes(basis, num_modes) + 1) / step
        reach.append(along[-1])
        squares = squares[..., None] + along[:-1].repeat_interleave(2 if is_complex(basis) else 1).square()
    length = squares.sqrt()
    far = round(float(torch.stack(reach).min() - length.min()))
    return (length - length.min()).round().clamp_max(far).long(), far


def _squared_norms(bases: Sequence[Basis], rows: Sequence[int]) -> Float[Tensor, "*rows"]:
    """Mean square of the wave that a unit coefficient puts together, `(*rows)`: 1 for constants, 2 for waves.

    The sine of order 0, which Fourier coefficients have a place for, is nothing: 0.
    """
    norms = torch.ones((), dtype=torch.float64)
    for basis, count in zip(bases, rows, strict=True):
        along = torch.full((count,), 2.0, dtype=torch.float64)
        if basis != "sine":
            along[0] = 1.0
        if is_complex(basis):
            along[1] = 0.0
        norms = norms[..., None] * along
    return norms
