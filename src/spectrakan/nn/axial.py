"""The axial layer of `nn/spectral` as one operation with its own gradient, a sample at a time.

A sample's arrays stay in the processor's cache from the analysis to the synthesis, and no array is rearranged: with
the real rows of all modes before the imaginary ones, the coefficients `(channel, 2 modes, lines)` of an axis are a
stack of matrices `(channel and part, lines)`, one a mode, and the mixed ones `(mode, part, channel, lines)` one of
matrices `(mode and part, lines)`, one a channel. On one axis all samples are taken together, one line each.
Shapes: fields `(channel, batch, *space)`.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from spectrakan.nn.execution import differentiable
from spectrakan.nn.products import sample_major


class Part(NamedTuple):
    """What the layer does along one axis.

    `analysis` `(2 modes, n)` and `synthesis` `(n, 2 modes)` as in `numerics.fourier`, `weight` `(modes, in, out, 2)`,
    `gate` `(modes,)` or None, `factor` `(modes, 2, in, batch)` or None.
    """

    analysis: Tensor
    synthesis: Tensor
    weight: Tensor
    gate: Tensor | None
    factor: Tensor | None

    @property
    def scaled(self) -> Tensor:
        """The gate times the weight."""
        if self.gate is None:
            return self.weight
        scaled: Tensor = self.weight * self.gate.view(-1, 1, 1, 1)
        return scaled


class Axial:
    """The layer's matrices, its passes over some samples, and the sums of its gradients."""

    def __init__(self, flat: Sequence[Tensor | None], *, backward: bool = False, keep: bool = False) -> None:
        """`keep`: keep the matrices of the forward pass for later calls with the same weights."""
        size = len(Part._fields)
        parts = [Part(*flat[start : start + size]) for start in range(0, len(flat), size)]  # type: ignore[arg-type]
        self.parts = parts
        if keep:
            self.matrices = [_kept_matrices(part) for part in parts]
        else:
            make = _backward_matrices if backward else _forward_matrices
            self.matrices = [make(part.scaled) for part in parts]
        self.into = [_real_rows_first(part.synthesis.T) if backward else _ordered_analysis(part) for part in parts]
        if backward:
            self.by_matrix = [torch.zeros_like(each) for each in self.matrices]
            self.by_factor = [None if part.factor is None else torch.empty_like(part.factor) for part in parts]

    def run(self, field: Tensor, target: Tensor, at: slice) -> list[Tensor]:
        """Synthesis, mixing and analysis, summed over axes; the coefficients without and with factors."""
        kept = []
        for axis in reversed(range(len(self.parts))):
            factor, rows = self.parts[axis].factor, _analysed(self.into[axis], field, axis)
            moved = rows if factor is None else _turned(rows, factor, at)
            kept += [rows, moved]
            _synthesise(target, torch.bmm(self.matrices[axis], _by_mode(moved)), self.parts[axis].synthesis, axis)
        return kept

    def pull(self, gradient: Tensor, target: Tensor, at: slice, kept: Iterator[Tensor]) -> None:
        """From the gradient of the result to that of the field; adds to the sums."""
        for axis in reversed(range(len(self.parts))):
            factor, changed, rows, moved = self.parts[axis].factor, self.by_factor[axis], next(kept), next(kept)
            by_mixed = _by_mode(_analysed(self.into[axis], gradient, axis))
            self.by_matrix[axis].baddbmm_(_by_mode(moved), by_mixed.transpose(1, 2))
            by_rows = torch.bmm(self.matrices[axis], by_mixed)
            if factor is not None and changed is not None:
                by_rows = _turned_back(by_rows, rows, factor, changed, at)
            _synthesise(target, by_rows, self.parts[axis].analysis.T, axis)

    def gradients(self) -> list[Tensor | None]:
        """The gradients of all parts."""
        found: list[Tensor | None] = []
        for part, by, changed in zip(self.parts, self.by_matrix, self.by_factor, strict=True):
            modes, width, out, _ = part.weight.shape
            real, imaginary = torch.view_as_complex(by.view(modes, width, 2, out, 2)).unbind(2)
            total = torch.view_as_real(torch.add(real, imaginary, alpha=-1j))
            by_gate = None if part.gate is None else (total * part.weight).flatten(1).sum(1)
            by_weight = total if part.gate is None else total.mul_(part.gate.view(-1, 1, 1, 1))
            found += [None, None, by_weight, by_gate, changed]
        return found


class AxialLayer(torch.autograd.Function):
    """`apply(plain, field, *parts)`; `plain` is the same in plain operations, for gradients of second order."""

    @staticmethod
    def forward(ctx: Any, plain: Any, field: Tensor, *flat: Tensor | None) -> Tensor:
        """The sum over axes of synthesis, mixing and analysis."""
        axial, out = Axial(flat, keep=ctx is None), sample_major(field, field.shape[0])
        kept = [each for at in samples_of(field) for each in axial.run(field[:, at], out[:, at], at)]
        if ctx is not None:
            ctx.plain, ctx.given = plain, len(flat)
            ctx.save_for_backward(field, *flat, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the field, weights, gates and factors."""
        field, *saved = ctx.saved_tensors
        flat, kept = saved[: ctx.given], iter(saved[ctx.given :])
        if torch.is_grad_enabled():  # of second order
            return None, *differentiable(ctx.plain, gradients[0], field, *flat)
        axial, below = Axial(flat, backward=True), sample_major(field, field.shape[0])
        for at in samples_of(field):
            axial.pull(gradients[0][:, at], below[:, at], at, kept)
        return None, below, *axial.gradients()


def samples_of(field: Tensor) -> Iterator[slice]:
    """The samples that are taken together."""
    size = field.shape[1] if field.ndim == 3 else 1
    return (slice(start, start + size) for start in range(0, field.shape[1], size))


def _real_rows_first(matrix: Tensor) -> Tensor:
    """Rows (mode, part) in the order (part, mode)."""
    return matrix.reshape(-1, 2, matrix.shape[1]).transpose(0, 1).reshape(matrix.shape)


def _forward_matrices(weight: Tensor) -> Tensor:
    """Real matrices `(mode, (part, out), (in, part))` of complex ones: (W_r, -W_i) and (W_i, W_r)."""
    modes, width, out, _ = weight.shape
    blocks = weight.new_empty(modes, width, 2, 2, out)
    blocks[:, :, 0] = weight.transpose(2, 3)
    torch.neg(blocks[:, :, 0, 1], out=blocks[:, :, 1, 0])
    blocks[:, :, 1, 1] = blocks[:, :, 0, 0]
    return blocks.view(modes, 2 * width, 2 * out).transpose(1, 2)


_ordered: MutableMapping[Tensor, Tensor] = WeakTensorKeyDictionary()
_kept: MutableMapping[Tensor, tuple[list[Tensor], Tensor]] = WeakTensorKeyDictionary()


def _ordered_analysis(part: Part) -> Tensor:
    """The analysis with real rows first, kept as long as the analysis, which never changes."""
    if part.analysis not in _ordered:
        _ordered[part.analysis] = _real_rows_first(part.analysis)
    return _ordered[part.analysis]


def _kept_matrices(part: Part) -> Tensor:
    """`_forward_matrices` of the last call with the same weights; compared by value, however they were changed."""
    given = [part.weight] if part.gate is None else [part.weight, part.gate]
    found = _kept.get(part.weight)
    if found is not None and len(found[0]) == len(given) and all(map(_same, found[0], given)):
        return found[1]
    matrices = _forward_matrices(part.scaled)
    _kept[part.weight] = [each.clone() for each in given], matrices
    return matrices


def _same(first: Tensor, second: Tensor) -> bool:
    """`torch.equal`, which takes five times as long."""
    return np.array_equal(first.detach().numpy(), second.detach().numpy())


def _backward_matrices(weight: Tensor) -> Tensor:
    """The transposed ones, `(mode, (part, in), (out, part))`: W and i W."""
    modes, width, out, _ = weight.shape
    blocks = weight.new_empty(modes, 2, width, out, 2)
    blocks[:, 0] = weight
    torch.mul(torch.view_as_complex(blocks[:, 0]), 1j, out=torch.view_as_complex(blocks[:, 1]))
    return blocks.view(modes, 2 * width, 2 * out)


def _by_mode(rows: Tensor) -> Tensor:
    """`(channel, (part, mode), lines)` as `(mode, (channel, part), lines)`."""
    channels, count, lines = rows.shape
    return rows.view(2 * channels, count // 2, lines).transpose(0, 1)


def _analysed(matrix: Tensor, field: Tensor, axis: int) -> Tensor:
    """Coefficients `(channel, rows, lines)` of some samples along an axis."""
    channels, samples, *space = field.shape
    if axis == len(space) - 1:
        lines = field.reshape(channels, -1, space[axis]).transpose(1, 2)
    elif axis == 0 and samples == 1:
        lines = field.reshape(channels, space[axis], -1)
    else:
        lines = field.movedim(axis + 2, 1).reshape(channels, space[axis], -1)
    return torch.bmm(matrix.expand(channels, *matrix.shape), lines)


def _synthesise(target: Tensor, mixed: Tensor, matrix: Tensor, axis: int) -> None:
    """Add the fields of coefficients `(mode, (part, channel), lines)` along an axis; the last axis begins."""
    channels, samples, *space = target.shape
    rows = mixed.view(matrix.shape[1], channels, -1)
    stack = matrix.expand(channels, *matrix.shape)
    if axis == len(space) - 1:
        torch.mm(rows.flatten(1).T, matrix.T, out=target.view(-1, space[axis]))
    elif axis == 0 and samples == 1:
        target.view(channels, space[axis], -1).baddbmm_(stack, rows.transpose(0, 1))
    else:
        field = torch.bmm(stack, rows.transpose(0, 1))
        others = space[:axis] + space[axis + 1 :]
        target.add_(field.view(channels, space[axis], samples, *others).movedim(1, axis + 2))


def _turned(rows: Tensor, factor: Tensor, at: slice) -> Tensor:
    """The product of `(channel, (part, mode), lines)` and the samples' factors."""
    real, imaginary = factor[..., at].permute(1, 2, 0, 3)
    pairs = rows.view(len(rows), 2, len(factor), -1)
    out = pairs * real[:, None]
    out[:, 0].addcmul_(pairs[:, 1], imaginary, value=-1)
    out[:, 1].addcmul_(pairs[:, 0], imaginary)
    found: Tensor = out.view(rows.shape)
    return found


def _turned_back(gradient: Tensor, rows: Tensor, factor: Tensor, changed: Tensor, at: slice) -> Tensor:
    """From the gradient `(mode, (part, channel), lines)` of the product to that of its rows.

    That of the samples' factors goes into `changed`.
    """
    modes, _, channels, _ = factor.shape
    real, imaginary = factor[..., at].unbind(1)
    x, y = rows.view(channels, 2, modes, -1).permute(1, 2, 0, 3)
    pairs = gradient.view(modes, 2, channels, -1)
    u, v = pairs.unbind(1)
    out = pairs * real[:, None]
    out[:, 0].addcmul_(v, imaginary)
    out[:, 1].addcmul_(u, imaginary, value=-1)
    for number, each in enumerate([(u * x).addcmul_(v, y), (v * x).addcmul_(u, y, value=-1)]):
        changed[:, number, :, at] = each if real.shape[-1] == each.shape[-1] else each.sum(-1, keepdim=True)
    found: Tensor = out.view(gradient.shape)
    return found
