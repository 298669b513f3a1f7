"""LNO: the Laplace neural operator, linear systems with learned poles between pointwise maps.

    v = L [u, x],     v <- N K N v + P v + b,     u_next = Q sin(Q' v),     K the pole-residue layer, N instance norm

Cao et al., Laplace neural operator for solving differential equations, Nature Machine Intelligence 2024. Sizes
follow the published scripts by dimension: 16 poles and width 4 in 1D (no coordinates, no norm), 4 and 16 in 2D, 4 and
8 in 3D (readout of 64 with relu; norm only in 2D). Faults of the published code, corrected here:
its poles start with, and may keep, a positive real part, so that outputs grow without bound; its transient
part contracts the channels twice; over several axes it leaves out the products of one axis' steady with another's
transient part; it holds batch x width² x poles^d x cells^d numbers at once; and it needs the training grid.

The Laplace layer: each pair of channels is a linear system given by its poles and residues, at rest at x = 0.

Along one axis the input is the Fourier series u(x) = sum_l alpha_l e^{i w_l x} through its cells, and the system
K(s) = sum_n beta_n / (s - mu_n) responds with
    y(x) = sum_l alpha_l K(i w_l) e^{i w_l x}  -  sum_n beta_n e^{mu_n x} sum_l alpha_l / (i w_l - mu_n),
its steady and its transient part; y is the real part of the convolution of u with sum_n beta_n e^{mu_n x}, x > 0.
Over several axes K(s) = sum_{n_1..n_d} beta_{n_1..n_d} prod_a 1 / (s_a - mu_{a, n_a}); the response is the product
of "steady minus transient" of all axes, so it has 2^d parts. Each is contracted axis by axis: no array is larger
than batch x width² x poles x cells^(d-1).
Shapes: fields `(channel, batch, *space)`; poles of an axis `(in, out, poles, 2)`; residues `(in, out, *poles, 2)`.
"""

import itertools
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Complex
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis, mean_over, wave_transform
from spectrakan.nn.embedding import channels_first, channels_last, with_coordinates, with_params
from spectrakan.nn.execution import Field
from spectrakan.nn.pointwise import PointwiseLinear
from spectrakan.nn.spectral import multiply_modes

PUBLISHED_SIZES: dict[int, tuple[int, int, int]] = {1: (4, 16, 128), 2: (16, 4, 128), 3: (8, 4, 64)}
"""Width, poles and readout width by the number of axes."""
NORM_FLOOR = 1e-5


@settings
class LNOConfig:
    """Settings of the operator; unset ones have the published size for the number of axes."""

    width: Count | None = None
    """Channels of the features: 4, 16, 8 in 1D, 2D, 3D."""
    num_modes: Count | None = None
    """Poles along each axis: 16, 4, 4."""
    num_layers: Count = 1
    """Laplace layers, with a sine between."""
    norm: bool | None = None
    """Instance norm before and after each Laplace layer: in 2D only."""
    readout_width: Count | None = None
    """Hidden channels of the readout: 128, 128, 64."""


class LaplaceLayer(nn.Module):
    """N K N v + P v + b."""

    def __init__(self, width: int, num_modes: int, space_dims: int, *, norm: bool) -> None:
        super().__init__()
        self.systems = PoleResidue(width, num_modes, space_dims)
        self.pointwise = PointwiseLinear(width, width)
        self.norm = norm

    def forward(self, field: Tensor, axes: Sequence[Axis]) -> Tensor:
        """`(channel, batch, *space)` to the same shape."""
        output = self.systems(instance_norm(field, axes) if self.norm else field, axes)
        output = instance_norm(output, axes) if self.norm else output
        found: Tensor = output + self.pointwise(field)
        return found


class LNO(Operator):
    """The operator of the file's equations."""

    name = "lno"
    config: LNOConfig

    def _build(self) -> None:
        signature, config = self.signature, self.config
        dims, published = signature.space_dims, PUBLISHED_SIZES[signature.space_dims]
        given = (config.width, config.num_modes, config.readout_width)
        width, modes, hidden = (own or size for own, size in zip(given, published, strict=True))
        self.located = dims > 1
        channels = signature.history * signature.in_channels + signature.num_params + (dims if self.located else 0)
        norm = dims == 2 if config.norm is None else config.norm
        self.lift = PointwiseLinear(channels, width)
        self.layers = nn.ModuleList(LaplaceLayer(width, modes, dims, norm=norm) for _ in range(config.num_layers))
        self.hidden = PointwiseLinear(width, hidden)
        self.out = PointwiseLinear(hidden, self.network_out_channels)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Lift, Laplace layers, readout at unit scale."""
        inputs = with_params(channels_first(history), params)
        inputs = with_coordinates(inputs, axes) if self.located else inputs
        field = self.lift(inputs)
        for number, layer in enumerate(self.layers, start=1):
            field = layer(field, axes)
            field = field if number == len(self.layers) else field.sin()
        hidden = self.hidden(field)
        return channels_last(self.out(F.relu(hidden) if len(axes) == 3 else hidden.sin()))


def instance_norm(field: Tensor, axes: Sequence[Axis]) -> Tensor:
    """Mean 0 and variance 1 over space, for each channel and sample, by the cells' volumes."""
    shape = (*field.shape[:2], *[1] * len(axes))
    centred = field - mean_over(field, axes).view(shape)
    variance = mean_over(centred.square(), axes).view(shape)
    return centred * torch.rsqrt(variance + NORM_FLOOR)


MIN_DECAY = 0.05
"""Slowest decay over the unit length: below it, steady and transient part would cancel to rounding error."""
FIRST_DECAYS = (1.0, 8.0)
"""Decays before training, uniform between; frequencies are uniform up to half a cycle a pole."""

_MODE, _POLE, _CELL = "pqr", "xyz", "uvw"
Key = tuple[bool, ...]


class PoleResidue(nn.Module):
    """The layer of the file's equations; poles have a negative real part for all parameters.

    The first of the two numbers of a pole gives its decay, `MIN_DECAY` + softplus; the second its frequency.
    """

    def __init__(self, width: int, num_poles: int, space_dims: int) -> None:
        super().__init__()
        pairs = (width, width)
        self.poles = nn.ParameterList()
        low, high = FIRST_DECAYS
        for _ in range(space_dims):
            decay = low + (high - low) * torch.rand(*pairs, num_poles)
            frequency = math.pi * num_poles * (2 * torch.rand(*pairs, num_poles) - 1)
            self.poles.append(torch.stack([torch.expm1(decay - MIN_DECAY).log(), frequency], dim=-1))
        # A system whose poles all respond at their own decay's size keeps the variance of its input.
        size = (sum(FIRST_DECAYS) / 2) ** space_dims / math.sqrt(2 * width * num_poles**space_dims)
        self.residues = nn.Parameter(size * torch.randn(*pairs, *[num_poles] * space_dims, 2))

    def complex_poles(self, axis: int) -> Complex[Tensor, "channel out poles"]:
        """The poles mu along one axis."""
        decay, frequency = self.poles[axis].unbind(-1)
        return torch.complex(-MIN_DECAY - F.softplus(decay), frequency)

    def forward(self, field: Field, axes: Sequence[Axis]) -> Field:
        """`(channel, batch, *space)` to the same shape."""
        waves = [wave_transform(axis, field) for axis in axes]
        spectrum = field.to(waves[0][1].dtype)
        gains, decays = [], []
        for number, (axis, (frequencies, analysis)) in enumerate(zip(axes, waves, strict=True)):
            poles = self.complex_poles(number)[..., None]
            gains.append(1 / (1j * frequencies - poles))
            decays.append((poles * axis.centres.to(field.dtype).to(field.device)).exp())
            spectrum = torch.tensordot(analysis, spectrum, dims=([1], [number + 2])).movedim(0, number + 2)
        parts = {
            key: self._part(spectrum, gains, decays, key)
            for key in itertools.product((False, True), repeat=len(axes))
        }
        for number in reversed(range(len(axes))):  # the sum of all parts on the cells, back from modes axis by axis
            analysis = waves[number][1]
            synthesis = (analysis.conj() / axes[number].widths.to(analysis)).T
            parts = {
                key: torch.tensordot(synthesis, parts[*key, False], dims=([1], [number + 2])).movedim(0, number + 2)
                + parts[*key, True]
                for key in itertools.product((False, True), repeat=number)
            }
        return parts[()].real.contiguous()

    def _part(self, spectrum: Tensor, gains: Sequence[Tensor], decays: Sequence[Tensor], transient: Key) -> Tensor:
        """One of the 2^d parts: modes along steady axes, cells along transient ones, `(out, batch, ..)`."""
        axes = range(len(transient))
        fading, steady = [a for a in axes if transient[a]], [a for a in axes if not transient[a]]
        modes, poles = _MODE[: len(axes)], _POLE[: len(axes)]
        mixed = "".join(_POLE[a] if transient[a] else _MODE[a] for a in axes)
        into, out = ([f"io{_POLE[a]}{names[a]}" for a in axes] for names in (_MODE, _CELL))
        residues = torch.view_as_complex(self.residues)
        terms = ",".join([f"io{poles}", *(into[a] for a in steady)])
        systems = torch.einsum(f"{terms}->io{mixed}", residues, *(gains[a] for a in steady))
        if not fading:
            return multiply_modes(systems.flatten(2).permute(2, 0, 1), spectrum.flatten(2)).view(spectrum.shape)
        # From left to right: modes to poles, times the residues, poles to cells.
        terms = ",".join([f"ib{modes}", *(into[a] for a in fading), f"io{mixed}", *(out[a] for a in fading)])
        cells = "".join(_CELL[a] if transient[a] else _MODE[a] for a in axes)
        matrices = (*(gains[a] for a in fading), systems, *(decays[a] for a in fading))
        sign = -1 if len(fading) % 2 else 1
        return sign * torch.einsum(f"{terms}->ob{cells}", spectrum, *matrices)
