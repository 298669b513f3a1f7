"""How the prediction moves: the readout's hidden units meet features and modulation in every cell.

    p(y) = [last frame +] scale G (W_2 gelu(h(y)) + b_2 [+ H t]),     h(y) = W_1 f(y) + B A + b_1

with G the gates on the answer's modes, if there are any. Where a part of the readout is a factor c of a field u of
the last frame, D(c u) = u Dc + c Du with both in their intervals. Per output cell the Jacobian's row sums are
bounded, which is the norm from sup to sup:
    |G (W_2 s J_h + H J_t) + last| row sums  +  |G| (|W_2 s| (what varies in h)  +  |W_2| d (reach of h)  +  (what
    varies in H t)),     gelu'(h) in s +- d.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.answer_gates import AnswerGates
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import pointwise
from spectrakan.theory.attention_bounds import cell_blocks
from spectrakan.theory.signal import Signal, Stage
from spectrakan.theory.slopes import slope_range
from spectrakan.theory.tangent import Tangent

CELLS_AT_ONCE = 16


@dataclass(frozen=True)
class _Hidden:
    """Hidden units of some cells: `middle` `(hidden, cells, inputs)`, what varies `(hidden, cells)`."""

    cells: slice
    middle: Tensor
    varies: Tensor

    def reach(self) -> Tensor:
        return self.middle.abs().sum(-1) + self.varies


@dataclass(frozen=True)
class _Answer:
    """Answers of some cells: `middle` `(out, cells, inputs)`, what varies `(out, cells)`."""

    cells: slice
    middle: Tensor
    varies: Tensor


def prediction_rate(
    model: SpectraKAN,
    token: Signal,
    features: Signal,
    value: Tensor,
    modulation: Tangent,
    axes: Sequence[Axis],
    last: Tensor,
) -> Tensor:
    """Sup over cells and fields of the prediction's rate in the sup norm, at unit scale.

    A's value `(values,)`; `last` frame at unit scale `(field, cells)`.
    """
    local, out = model.readout.local, model.readout.out
    spreading = _spreading(model)
    centre = local.weight @ features.value.flatten(1) + (spreading @ value + local.bias)[:, None]
    reach = torch.cat([part.reach() for part in _hidden(model, features, modulation, spreading)], dim=1)
    moved = features.stage.moved(reach)
    low, high = slope_range("gelu", centre - moved, centre + moved)
    slope, half = (low + high) / 2, (high - low) / 2
    readings = pointwise(out.weight, out.bias, F.gelu(centre))
    scale = model.increment_scale[:, None]
    said = None if model.answer is None else token.tangent.times(scale * model.answer.weight)
    gates = None if model.answer_gates is None else _gate_matrices(model.answer_gates, features, axes)
    answers = []
    for part in _hidden(model, features, modulation, spreading):
        weight = out.weight[..., None] * slope[:, part.cells]
        varies = torch.einsum("ohy,hy->oy", weight.abs(), part.varies)
        bent = out.weight.abs() @ (half[:, part.cells] * part.reach())
        read = _Answer(part.cells, torch.einsum("ohy,hyn->oyn", weight, part.middle), varies + bent)
        if model.config.field_factors:
            read = _with_factors(read, readings, last, model, features.stage)
        middle, varies = scale[..., None] * read.middle, scale * read.varies
        if said is not None:
            middle = middle + said.middle[:, None]
            varies = varies if said.box is None else varies + said.box[:, None]
        answers.append(_Answer(part.cells, middle, varies))
    if gates is not None:
        answers = [_gated(answers, gates)]
    rates = []
    for answer in answers:
        if model.increments:
            _add_last_frame(answer.middle, answer.cells, model)
        rates.append((answer.middle.abs().sum(-1) + answer.varies).amax())
    return torch.stack(rates).amax()


def _with_factors(read: _Answer, readings: Tensor, last: Tensor, model: SpectraKAN, stage: Stage) -> _Answer:
    """The sum a + c u: rows of the readout are all a, then all c; `readings` of it at the centre of the ball."""
    field = last[:, read.cells]
    (added, factor), (added_varies, factor_varies) = read.middle.chunk(2), read.varies.chunk(2)
    middle = added + field[..., None] * factor
    _add_last_frame(middle, read.cells, model, readings.chunk(2)[1][:, read.cells])
    reach = factor.abs().sum(-1) + factor_varies
    # The field moves by the radius, a factor by what its rate allows.
    varies = added_varies + field.abs() * factor_varies + stage.radius * reach + stage.moved(reach)
    return _Answer(read.cells, middle, varies)


def _gate_matrices(gates: AnswerGates, features: Signal, axes: Sequence[Axis]) -> Tensor:
    """What the gates make of every cell's answer, `(out, from, to)`."""
    space = features.value.shape[1:]
    cells = torch.eye(space.numel(), dtype=features.value.dtype).view(1, -1, *space)
    through: Tensor = gates(cells.expand(gates.num_fields, -1, *space), axes)
    return through.flatten(2)


def _gated(answers: Sequence[_Answer], gates: Tensor) -> _Answer:
    """All cells' answers behind the gates, which mix them."""
    middle = torch.einsum("fjy,fjn->fyn", gates, torch.cat([part.middle for part in answers], dim=1))
    varies = torch.einsum("fjy,fj->fy", gates.abs(), torch.cat([part.varies for part in answers], dim=1))
    return _Answer(slice(0, middle.shape[1]), middle, varies)


def _spreading(model: SpectraKAN) -> Tensor:
    """B: from the modulation to the hidden units."""
    if model.readout.broadcast is not None:
        return model.readout.broadcast.weight
    local = model.readout.local.weight
    return local if model.merge is None else local @ model.merge.weight


def _hidden(model: SpectraKAN, features: Signal, modulation: Tangent, spreading: Tensor) -> Iterator[_Hidden]:
    weight = model.readout.local.weight
    channels, total = features.value.shape[0], features.value[0].numel()
    middle = features.tangent.middle.view(channels, total, -1)
    blocks, box = cell_blocks(features), features.tangent.box
    shared = modulation.times(spreading)
    aside = torch.zeros(weight.shape[0], dtype=weight.dtype) if shared.box is None else shared.box
    for start in range(0, total, CELLS_AT_ONCE):
        cells = slice(start, min(start + CELLS_AT_ONCE, total))
        jacobian = torch.einsum("hc,cyn->hyn", weight, middle[:, cells]) + shared.middle[:, None]
        varies = torch.einsum("hc,ycd,hd->hy", weight, blocks[cells], weight).clamp_min(0).sqrt()
        if box is not None:
            varies = torch.minimum(varies, weight.abs() @ box.view(channels, total)[:, cells])
        yield _Hidden(cells, jacobian, varies + aside[:, None])


def _add_last_frame(middle: Tensor, cells: slice, model: SpectraKAN, times: Tensor | float = 1.0) -> None:
    """Add `times` the last frame's derivative, one in its own field and cell, to rows `(out, cells, inputs)`."""
    fields, total = model.signature.in_channels, middle.shape[-1]
    frames = model.signature.history
    all_cells = total // (frames * fields)
    places = torch.arange(cells.start, cells.stop)
    for field, slope in enumerate(torch.as_tensor(times).expand(middle.shape[:2])):
        first = ((frames - 1) * fields + field) * all_cells
        middle[field, places - cells.start, first + places] += slope
