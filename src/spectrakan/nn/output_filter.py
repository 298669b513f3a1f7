"""A filter on the modes of the network's output: Wiener's filter, by wavelength and field.

    (G v)(x) = g_far v(x) + sum_{|k| < K} (g(|k|) - g_far) v_k e_k(x),     k over all axes jointly, |k| its length

A network reads its output out cell by cell and has errors in all wavelengths, also where the solution has no power:
pressure is smooth where permeability jumps, the mass in a closed box is constant. Before training the factors are
computed from the residuals of the training data (`fit`):
    g(|k|) = S(|k|) / (S(|k|) + e²),     set to 0 below `CLOSED`,
S the mean square of their coefficients in an orthonormal basis and e the noise level, the error that the network is
expected to have, both relative to the residual's own size: white noise of that size has S = 1 throughout. A factor
near 0 is set to 0, because the loss hardly depends on the output behind it, which then grows without bound. The mean
over the domain, whose errors add up over the frames of a rollout, is kept where S(0) < `CONSERVED`.
Factors that were learned as weights closed for good while the network was still untrained, and did worse.

After training the errors are known, and open factors are set to the best ones for outputs v with true residuals w
(`refit`); errors of the mean that add up are taken as their sums over the frames of a rollout:
    g(|k|) = <w, v>_|k| / <v, v>_|k|,     at least 0, at most 1.
Factors above 1 would reduce the error of one step and let rollouts grow.

Waves suit the boundary: Fourier where the axis is periodic, sines where the field is held, cosines elsewhere.
Shapes: residuals `(field, batch, *space)`.
"""

import math
from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from spectrakan.nn.axis import Axis, AxisTransform, axis_transforms, over_parts
from spectrakan.nn.execution import Field, force_fp32
from spectrakan.numerics.fourier import Basis, frequencies, is_complex, stored_modes
from spectrakan.numerics.quadrature import to_float64
from spectrakan.numerics.resample import along_axis

WAVES_OF_BOUNDARY: dict[str, Basis] = {"periodic": "fourier", "dirichlet": "sine"}
CLOSED = 0.05
"""Factors below this are set to 0."""
CONSERVED = 1e-3
"""A mean whose square changes by less than this share of a mode of white noise counts as conserved."""

ROUNDING = 1e-12
"""Share of a field's squares below which a wavelength counts as empty."""


class OutputFilter(nn.Module):
    """The file's equation; before `fit` every factor is one and nothing changes."""

    gate: Tensor
    order: Tensor

    def __init__(self, num_fields: int, num_modes: int, boundary: Sequence[str], noise_level: float) -> None:
        super().__init__()
        self.num_fields, self.num_modes, self.noise_level = num_fields, num_modes, noise_level
        self.bases = tuple(WAVES_OF_BOUNDARY.get(kind, "cosine") for kind in boundary)
        self._has_mean = "sine" not in self.bases  # as the first mode
        with torch.device("cpu"):  # its numbers are read here, also when the model is built without memory
            order, far = _length_order(self.bases, num_modes)
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("gate", torch.ones(num_fields, far + 1))

    @force_fp32
    def forward(self, field: Field, axes: Sequence[Axis]) -> Field:
        """The filtered field."""
        transforms = axis_transforms(axes, self.bases, self.num_modes, field)
        waves = _analyse(field, transforms, axes)
        far = self.gate[:, -1].view(-1, *[1] * (field.ndim - 1))
        kept = waves * (self.gate[:, self._order_of(waves.shape[2:])].unsqueeze(1) - far)
        for dim, transform in enumerate(transforms, start=2):
            kept = along_axis(transform.synthesis, kept, dim)
        return torch.addcmul(kept, far, field)

    @torch.no_grad()
    def fit(self, residuals: Iterable[tuple[Tensor, Sequence[Axis]]]) -> None:
        """Wiener's factors for these residuals `(field, batch, *space)` of unit size, each on its axes."""
        power = torch.zeros(self.gate.shape, dtype=torch.float64)
        count = torch.zeros_like(power[0])
        for field, axes in residuals:
            exact = to_float64(field).cpu()[None]
            power += self._products(exact, exact, axes)
            count += exact.shape[2] * self._mode_count(axes)
        resolved = count > 0.5
        spectrum = power.clamp_min(0) / count.clamp_min(1)
        wiener = spectrum / (spectrum + self.noise_level**2)
        if self._has_mean:
            wiener[:, 0] *= spectrum[:, 0] >= CONSERVED
        self.gate.copy_(torch.where(resolved, wiener * (wiener >= CLOSED), to_float64(self.gate).cpu()))

    @torch.no_grad()
    def refit(self, pairs: Iterable[tuple[Tensor, Tensor, Sequence[Axis]]], *, adding: bool) -> None:
        """Factors for a trained network: its unfiltered and the true residuals, `(step, field, batch, *space)`.

        `adding` states that a rollout sums the residuals, step after step.
        """
        agreement, power = (torch.zeros(self.gate.shape, dtype=torch.float64) for _ in range(2))
        for output, true, axes in pairs:
            v, w = to_float64(output).cpu(), to_float64(true).cpu()
            shared, own = self._products(w, v, axes), self._products(v, v, axes)
            if adding and self._has_mean:
                v, w = v.cumsum(0), w.cumsum(0)
                shared[:, 0], own[:, 0] = self._products(w, v, axes)[:, 0], self._products(v, v, axes)[:, 0]
            agreement, power = agreement + shared, power + own
        old = to_float64(self.gate).cpu()
        best = (agreement / power.clamp_min(torch.finfo(torch.float64).tiny)).clamp(0, 1)
        # What is left over in wavelengths without power is rounding.
        there = power > ROUNDING * power.sum(1, keepdim=True)
        self.gate.copy_(torch.where((old > 0) & there, best, old))

    def _products(self, first: Tensor, second: Tensor, axes: Sequence[Axis]) -> Float[Tensor, "field gate"]:
        """Inner products of fields `(step, field, batch, *space)`, summed over all that share a gate."""
        first, second = (part.transpose(0, 1).flatten(1, 2) for part in (first, second))
        transforms = axis_transforms(axes, self.bases, self.num_modes, first)
        waves = _analyse(first, transforms, axes) * _analyse(second, transforms, axes)
        norms = _squared_norms(self.bases, waves.shape[2:])
        near = math.prod(axis.total for axis in axes) * (norms * waves).sum(1).flatten(1)
        products = torch.zeros(self.gate.shape, dtype=torch.float64)
        products.index_add_(1, self._order_of(waves.shape[2:]).cpu().flatten(), near)
        # What these modes leave over is far.
        products[:, -1] += over_parts((first * second).flatten(1).sum(1), axes) - near.sum(1)
        return products

    def _mode_count(self, axes: Sequence[Axis]) -> Float[Tensor, " gate"]:
        """How many modes each gate has on these axes."""
        transforms = axis_transforms(axes, self.bases, self.num_modes, self.gate)
        rows = [transform.analysis.shape[0] for transform in transforms]
        there = (_squared_norms(self.bases, rows) > 0).to(torch.float64)
        count = torch.zeros(self.gate.shape[1], dtype=torch.float64)
        count.index_add_(0, self._order_of(rows).cpu().flatten(), there.flatten())
        count[-1] += math.prod(axis.total for axis in axes) - there.sum()
        return count

    def _order_of(self, rows: Sequence[int]) -> Tensor:
        """The gate of every mode of as many rows along the axes, those that the cells resolve."""
        return self.order[tuple(slice(count) for count in rows)]


def _analyse(field: Tensor, transforms: Sequence[AxisTransform], axes: Sequence[Axis]) -> Tensor:
    """Coefficients along all axes, `(field, batch, *rows)`."""
    for dim, transform in enumerate(transforms, start=2):
        field = along_axis(transform.analysis, field, dim)
    return over_parts(field, axes)


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
