"""Bounds of the prediction: the readout's hidden units combine features and modulation in every cell.

    p(y) = [last frame +] scale G r(y),     r = W_2 gelu(h(y)) + b_2,     h(y) = W_1 f(y) + B A + b_1

with G the output filter, if there is one. With a multiplicative readout r = a + g T u with a and c the two halves of
the readout, T = tanh(c), u the last frame and g the gain: D(T u) = u DT + T Du with both in their intervals. Per
output cell the Jacobian's row sums are bounded, which is the norm from sup to sup:
    |G W_2 s J_h + last| row sums  +  |G| (|W_2 s| (variation of h)  +  |W_2| d (reach of h)),     gelu'(h) in s +- d.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.pointwise import pointwise
from spectrakan.theory.attention_bounds import cell_blocks
from spectrakan.theory.signal import Signal, Stage
from spectrakan.theory.slopes import slope_range
from spectrakan.theory.tangent import Tangent

CELLS_AT_ONCE = 16


@dataclass(frozen=True)
class _Rows:
    """Jacobians of some cells: `middle` `(rows, cells, inputs)`, what varies `(rows, cells)`."""

    cells: slice
    middle: Tensor
    varies: Tensor

    def reach(self) -> Tensor:
        return self.middle.abs().sum(-1) + self.varies

    def behind(self, name: str, centre: Tensor, stage: Stage) -> _Rows:
        """Behind a nonlinearity whose argument has the value `centre` `(rows, cells)` at the ball's centre."""
        reach = self.reach()
        moved = stage.moved(reach)
        low, high = slope_range(name, centre - moved, centre + moved)
        slope, half = (low + high) / 2, (high - low) / 2
        return replace(self, middle=slope[..., None] * self.middle, varies=slope.abs() * self.varies + half * reach)


def prediction_rate(
    model: SpectraKAN, features: Signal, value: Tensor, modulation: Tangent, axes: Sequence[Axis], last: Tensor
) -> Tensor:
    """Sup over cells and fields of the prediction's rate in the sup norm, at unit scale.

    A's value `(values,)`; `last` frame at unit scale `(field, cells)`.
    """
    readout = model.readout
    if readout.broadcast is None:
        raise TypeError("a model without a token has nothing to certify")
    shared = modulation.times(readout.broadcast.weight)
    shift = readout.broadcast.weight @ value + readout.local.bias
    centre = readout.local.weight @ features.value.flatten(1) + shift[:, None]
    readings = pointwise(readout.out.weight, readout.out.bias, F.gelu(centre))
    scale = model.residual_scale[:, None] if model.predict != "direct" else torch.ones_like(readings[:1, :1])
    residuals = []
    for part in _hidden(readout.local.weight, features, shared):
        bent = part.behind("gelu", centre[:, part.cells], features.stage)
        middle = torch.einsum("oh,hyn->oyn", readout.out.weight, bent.middle)
        read = _Rows(part.cells, middle, readout.out.weight.abs() @ bent.varies)
        if model.product_gain is not None:
            read = _with_product(read, readings, last, model.product_gain[:, None], features.stage)
        residuals.append(replace(read, middle=scale[..., None] * read.middle, varies=scale * read.varies))
    if model.output_filter is not None:
        # All cells behind the filter, which mixes them: a matrix of each field, `(out, from, to)`.
        space = features.value.shape[1:]
        cells = torch.eye(space.numel(), dtype=scale.dtype).view(1, -1, *space)
        matrices = model.output_filter(cells.expand(model.output_filter.num_fields, -1, *space), axes).flatten(2)
        middle, varies = (torch.cat([getattr(part, name) for part in residuals], 1) for name in ("middle", "varies"))
        middle = torch.einsum("fjy,fjn->fyn", matrices, middle)
        varies = torch.einsum("fjy,fj->fy", matrices.abs(), varies)
        residuals = [_Rows(slice(0, space.numel()), middle, varies)]
    if model.increments:
        for residual in residuals:
            _add_last_frame(residual, torch.ones_like(residual.varies), last.shape[1])
    return torch.stack([residual.reach().amax() for residual in residuals]).amax()


def _with_product(read: _Rows, readings: Tensor, last: Tensor, gain: Tensor, stage: Stage) -> _Rows:
    """The sum a + g tanh(c) u: rows of the readout are all a, then all c; `readings` of it at the ball's centre."""
    field, centre = last[:, read.cells], readings.chunk(2)[1][:, read.cells]
    (added, inner), (added_varies, inner_varies) = read.middle.chunk(2), read.varies.chunk(2)
    factor = _Rows(read.cells, inner, inner_varies).behind("tanh", centre, stage)
    reach = factor.reach()
    # The field moves by the radius, a factor by what its rate allows.
    varies = gain.abs() * (field.abs() * factor.varies + stage.radius * reach + stage.moved(reach))
    rows = _Rows(read.cells, added + (gain * field)[..., None] * factor.middle, added_varies + varies)
    _add_last_frame(rows, gain * centre.tanh(), last.shape[1])
    return rows


def _hidden(weight: Tensor, features: Signal, shared: Tangent) -> Iterator[_Rows]:
    """The hidden units of a few cells after another; the modulation's part is the same in all cells."""
    channels, total = features.value.shape[0], features.value[0].numel()
    middle, box = features.tangent.middle.view(channels, total, -1), features.tangent.box.view(channels, total)
    blocks = cell_blocks(features)
    for start in range(0, total, CELLS_AT_ONCE):
        cells = slice(start, min(start + CELLS_AT_ONCE, total))
        jacobian = torch.einsum("hc,cyn->hyn", weight, middle[:, cells]) + shared.middle[:, None]
        by_ball = torch.einsum("hc,ycd,hd->hy", weight, blocks[cells], weight).clamp_min(0).sqrt()
        varies = torch.minimum(by_ball, weight.abs() @ box[:, cells])
        yield _Rows(cells, jacobian, varies + shared.box[:, None])


def _add_last_frame(rows: _Rows, times: Tensor, total: int) -> None:
    """Add `times` `(field, cells)` the last frame's derivative, one in its own field and cell, in place."""
    fields, inputs = times.shape[0], rows.middle.shape[-1]
    cells = torch.arange(rows.cells.start, rows.cells.stop)
    for field, slope in enumerate(times):
        # Inputs are ordered by frame, field and cell: the last frame's are behind all others.
        first = inputs - (fields - field) * total
        rows.middle[field, cells - rows.cells.start, first + cells] += slope
