"""The global token: a few numbers that describe the state of the whole system.

    z = P(u) in R^{d_0},     t = Phi(z) in R^{token_width},     Phi a Kolmogorov-Arnold network (G-KAN).

P takes the history of the field at the centre of the domain (the paper), its mean, or centre, mean and standard
deviation; or `dynamics`, mean and standard deviation of the last frame and how the frames before led to it
(`nn/summary`). Physical parameters are appended. The numbers of `dynamics` are brought to unit scale and limited,

    z -> LIMIT tanh((z - m) / (s LIMIT)),     s^2 = spread^2 + (e / NOISE_SHARE)^2,

with m and spread their mean and standard deviation in the training data, and e their change when the frames err by
FRAME_ERROR. A number that small errors of a rollout change as much as samples differ is thereby shrunk, and the
token, and all that it conditions, stays bounded whatever a rollout runs into.
Shapes: history `(batch, history, *space, field)`, params `(batch, params)`.
"""

import math
from collections.abc import Sequence
from typing import Literal, Unpack, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.fields import OperatorSignature
from spectrakan.nn.axis import Axis, as_like, kept, mean_over, over_parts
from spectrakan.nn.execution import as_one, force_fp32
from spectrakan.nn.kan import KAN, SplineOptions
from spectrakan.nn.summary import dynamics, num_coefficients

Pool = Literal["center", "mean", "center+mean+std", "dynamics"]
TokenKind = Literal["kan", "mlp", "raw", "none"]
LIMIT = 4.0
"""Largest number of `dynamics`, in units of its scale."""
FRAME_ERROR = 0.01
"""Size of the smooth errors of frames, for fields at unit scale, that a summary is fitted to endure."""
NOISE_SHARE = 0.1
"""What such errors may change of a summary at most, in units of its scale."""
NUM_ERRORS = 8
"""Errors of the frames that are tried."""


class GlobalToken(nn.Module):
    """From history and parameters to the token of `width` numbers, by a network with one hidden layer of that width.

    `kind` is the network on the pooled numbers: a KAN (the paper) with `splines`, an MLP, or none (`raw`).
    """

    center: Tensor
    scale: Tensor

    def __init__(
        self,
        signature: OperatorSignature,
        *,
        kind: TokenKind = "kan",
        pool: Pool = "center",
        width: int = 32,
        **splines: Unpack[SplineOptions],
    ) -> None:
        super().__init__()
        self.pool = pool
        inputs = summary_size(pool, signature)
        if pool == "dynamics":
            self.register_buffer("center", torch.zeros(inputs))
            self.register_buffer("scale", torch.ones(inputs))
        self.width = inputs if kind == "raw" else width
        self.network: nn.Module
        if kind == "kan":
            splines.setdefault("grid_range", (-3.0, 3.0))  # of fields at unit scale, until `fit_grid`
            self.network = KAN([inputs, width, width], **splines)
        elif kind == "mlp":
            self.network = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width))
        else:
            self.network = nn.Identity()

    def forward(
        self,
        history: Float[Tensor, "batch history *space field"],
        params: Float[Tensor, "batch params"] | None,
        axes: Sequence[Axis],
    ) -> Float[Tensor, "batch token"]:
        """The token, `(batch, width)`."""
        return cast(Tensor, self.network(self.summary(history, params, axes)))

    def summary(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The summary z = P(u) with the parameters behind it, `(batch, d_0)`."""
        raw = self.raw_summary(history, params, axes)
        if self.pool != "dynamics":
            return raw
        return LIMIT * torch.tanh((raw - self.center) / (LIMIT * self.scale))

    @force_fp32
    def raw_summary(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The summary before it is brought to unit scale."""
        if self.pool == "dynamics":
            last = history[:, -1:]
            pooled = [space_mean(last, axes).flatten(1), space_spread(last, axes).flatten(1)]
            if history.shape[1] > 1:
                pooled.append(dynamics(history, axes))
        else:
            pooled = [part(history, axes).flatten(1) for part in _PARTS[self.pool]]
        return torch.cat(pooled if params is None else [*pooled, params], dim=1)

    @torch.no_grad()
    def fit(self, raw: Tensor, disturbed: Tensor) -> None:
        """Fit units, or the splines' grids, to `raw_summary` of training data `(n, d_0)`.

        `disturbed` `(errors, n, d_0)` has the summaries of the same data for some errors of the frames.
        """
        if self.pool == "dynamics":
            error = (disturbed - raw).square().mean((0, 1)).sqrt()
            self.center.copy_(raw.mean(0))
            self.scale.copy_(torch.hypot(raw.std(0), error / NOISE_SHARE).clamp_min(1e-6))
        elif isinstance(self.network, KAN):
            self.network.fit_grid(raw)


def disturbed(history: Tensor, axes: Sequence[Axis], seed: int) -> Tensor:
    """The history with random long waves of size FRAME_ERROR on each frame and field, the same at every resolution.

    Each error is a constant and the first 4 cosines and sines along each axis, all of equal expected size. It is the
    same for all samples, so that it does not depend on how they are batched.
    """
    generator, frames, fields = torch.Generator().manual_seed(seed), history.shape[1], history.shape[-1]
    waves = []
    for axis in axes:  # cosines and sines of unit mean square at the cell centres, `(8, n)`
        angle = 2 * math.pi * torch.arange(1, 5, dtype=torch.float64)[:, None] * axis.centres
        waves.append(as_like(math.sqrt(2) * torch.cat([angle.cos(), angle.sin()]), history))
    size = FRAME_ERROR / math.sqrt(1 + sum(len(each) for each in waves))
    counts = (1, *(len(each) for each in waves))
    draws = [torch.randn(frames, fields, count, generator=generator).to(history) for count in counts]
    ones = [1] * len(axes)
    error: Tensor = draws[0].reshape(frames, *ones, fields)
    for dim, (draw, wave) in enumerate(zip(draws[1:], waves, strict=True)):
        shape = [frames, *ones, fields]
        shape[1 + dim] = wave.shape[1]
        error = error + torch.einsum("hfk,kn->hnf", draw, wave).reshape(shape)
    return history + size * error


def summary_size(pool: Pool, signature: OperatorSignature) -> int:
    """Numbers d_0 of a summary, parameters included."""
    fields, frames = signature.in_channels, signature.history
    if pool != "dynamics":
        return len(_PARTS[pool]) * fields * frames + signature.num_params
    fitted = num_coefficients(fields, signature.space_dims) if frames > 1 else 0
    return 2 * fields + fitted + signature.num_params


def centre_value(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The field at the centre of the domain, `(batch, history, field)`.

    Along each axis a cubic through the 4 cells around the centre: the same point at every size and grading, with an
    error of order 4 in the cell width.
    """
    for axis in axes:
        cells, weights = _centre_stencil(axis, history)
        history = torch.tensordot(history.index_select(2, cells), weights, dims=([2], [0]))
    return over_parts(history, axes)


@kept
def _centre_stencil(axis: Axis, like: Tensor) -> tuple[Tensor, Tensor]:
    """The 4 cells around the centre of an axis, and the weights of their cubic there (Lagrange).

    Of an axis that is cut among processes, those of the 4 that this process holds.
    """
    # Tensors, not numbers: a traced program must not be tied to one size.
    centres = axis.centres if axis.whole is None else axis.whole.centres
    below = (centres < 0.5).sum(0, keepdim=True)
    cells = (below - 2).clamp(0, axis.total - 4) + torch.arange(4)
    nodes = centres[cells]
    others = ~torch.eye(4, dtype=torch.bool)
    ratios = (0.5 - nodes)[None, :] / torch.where(others, nodes[:, None] - nodes[None, :], 1.0)
    weights = torch.where(others, ratios, 1.0).prod(1)
    if axis.whole is not None:
        held = (cells >= axis.start) & (cells < axis.start + axis.cells)
        cells, weights = cells[held] - axis.start, weights[held]
    return cells.to(like.device), weights.to(like.dtype).to(like.device)


def space_mean(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The mean over the domain by cell volumes, `(batch, history, field)`."""
    return mean_over(history.movedim(-1, 2), axes)


def space_spread(history: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The standard deviation over the domain, above zero so that its gradient is finite everywhere."""
    mean = space_mean(history, axes)
    for _ in axes:
        mean = mean.unsqueeze(2)
    return root_mean_square(history - mean, axes)


@as_one
def root_mean_square(deviations: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The root of the mean square, and of 1e-6, over the domain: `(batch, history, field)`."""
    return (space_mean(deviations.square(), axes) + 1e-6).sqrt()


_PARTS = {
    "center": [centre_value],
    "mean": [space_mean],
    "center+mean+std": [centre_value, space_mean, space_spread],
}
"""What each way of pooling takes from every channel."""
