"""The axial layer of `nn/spectral` with its own gradient, in few large matrix products.

Along each axis the analysis of some samples is one product, the mixing of all modes is one grouped product, and the
synthesis is one. Of coefficients only those before mixing are kept for the gradient.
On one axis a sample is one line, and the transforms of all samples are one product of their cells as they lie in
memory; on several axes the cells of some lines are put together for it, while they are in the cache.
Shapes: cells `(batch, *space, channel)`, as `products.dense` has them; coefficients along an axis
`(batch, line, mode, part, channel)` with the real part before the imaginary one.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from spectrakan.nn.products import grouped_product, in_memory, product

GROUP = 2**14
"""Most cells of samples, for each thread, whose modes are mixed together."""
NEAR = 2**13
"""Most cells of samples, for each thread, that are transformed together: steps across more of them miss the cache."""


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


class Axial:
    """The layer's matrices, its passes over some samples, and the sums of its gradients."""

    def __init__(
        self, flat: Sequence[Tensor | None], *, keep: bool = False, matrices: Sequence[Tensor] | None = None
    ) -> None:
        """`keep`: keep the matrices for later calls with the same weights; `matrices`: those of the forward pass."""
        size = len(Part._fields)
        self.parts = [Part(*flat[start : start + size]) for start in range(0, len(flat), size)]  # type: ignore[arg-type]
        several, made = len(self.parts) > 1, _kept_matrices if keep else _matrices
        self.matrices = [made(part, several) for part in self.parts] if matrices is None else list(matrices)
        self.turns = [None if part.factor is None else _by_sample(part.factor, several) for part in self.parts]
        if matrices is not None:
            self.matrices = [each.contiguous() for each in self.matrices]
            self.by_matrix = [torch.zeros_like(each) for each in self.matrices]
            self.by_factor = [None if part.factor is None else torch.empty_like(part.factor) for part in self.parts]

    def run(self, cells: Tensor, at: slice) -> tuple[Tensor, list[Tensor]]:
        """Analysis, mixing and synthesis, summed over axes; the coefficients before mixing."""
        kept, mixed = [], []
        for axis, part in enumerate(self.parts):
            kept.append(_analysed(part.analysis, cells, axis))
            rows = self._turned(axis, kept[-1], at)
            mixed.append(_by_line(grouped_product(_by_mode(rows), self.matrices[axis]), rows))
        return _synthesised(mixed, [part.synthesis for part in self.parts], cells.shape), kept

    def pull(self, gradient: Tensor, at: slice, kept: Iterator[Tensor], target: Tensor | None = None) -> Tensor:
        """From the gradient of the result to that of the cells; adds to the sums."""
        found = []
        for axis, (part, changed) in enumerate(zip(self.parts, self.by_factor, strict=True)):
            rows, by_mixed = next(kept), _analysed(part.synthesis.T, gradient, axis)
            slopes, inputs = _by_mode(by_mixed), _by_mode(self._turned(axis, rows, at))
            self.by_matrix[axis].baddbmm_(inputs.mT, slopes)
            found.append(_by_line(grouped_product(slopes, self.matrices[axis].mT), rows))
            if changed is not None:
                if found[-1].stride() != rows.stride():  # parts and samples of one axis change places for the product
                    found[-1] = torch.empty_like(rows).copy_(found[-1])
                (u, v), (x, y), by = found[-1].unbind(3), rows.unbind(3), changed.permute(3, 0, 1, 2)[at]
                by[:, :, 0], by[:, :, 1] = (found[-1] * rows).sum(1).sum(2), (v * x).addcmul_(u, y, value=-1).sum(1)
                found[-1] = self._turned(axis, found[-1], at, back=True)
        return _synthesised(found, [part.analysis.T for part in self.parts], gradient.shape, target)

    def _turned(self, axis: int, rows: Tensor, at: slice, *, back: bool = False) -> Tensor:
        """The product of coefficients and the samples' factors, or their conjugates."""
        factor = self.turns[axis]
        if factor is None:
            return rows
        (real, imaginary), sign = (each[at] for each in factor), -1 if back else 1
        found = rows * real
        found[:, :, :, 0].addcmul_(rows[:, :, :, 1], imaginary, value=-sign)
        found[:, :, :, 1].addcmul_(rows[:, :, :, 0], imaginary, value=sign)
        return found

    def gradients(self) -> list[Tensor | None]:
        """The gradients of all parts."""
        found: list[Tensor | None] = []
        for part, by, changed in zip(self.parts, self.by_matrix, self.by_factor, strict=True):
            real, imaginary = by.unflatten(2, (2, -1)).unflatten(1, (2, -1)).unbind(1)
            total = torch.empty_like(part.weight)
            torch.add(real[:, :, 0], imaginary[:, :, 1], out=total[..., 0])
            torch.sub(real[:, :, 1], imaginary[:, :, 0], out=total[..., 1])
            by_gate = None if part.gate is None else (total * part.weight).flatten(1).sum(1)
            by_weight = total if part.gate is None else total.mul_(part.gate.view(-1, 1, 1, 1))
            found += [None, None, by_weight, by_gate, changed]
        return found


def groups_of(cells: Tensor, size: int = 0) -> list[slice]:
    """The samples that are taken together, up to a number of cells for each of torch's threads.

    Every operation is cut among the threads: with as many cells each as one has alone, they stay in the caches of
    their cores, and threads meet less often.
    """
    count = max(1, (size or GROUP) * torch.get_num_threads() // max(1, cells[0, ..., 0].numel()))
    return [slice(start, start + count) for start in range(0, len(cells), count)]


def real_form(weight: Tensor) -> Tensor:
    """Complex matrices, stored as pairs `(modes, in, out, 2)`, as real ones `(modes, (part, out), (part, in))`."""
    real, imaginary = weight.transpose(1, 2).unbind(-1)
    upper, lower = torch.cat([real, -imaginary], dim=2), torch.cat([imaginary, real], dim=2)
    return torch.cat([upper, lower], dim=1)


def _matrices(part: Part, several: bool) -> Tensor:
    """The gate times the weight as real matrices `(modes, (part, in), (part, out))`.

    On several axes they are transposed in memory, as grouped products want them.
    """
    matrices = real_form(part.weight if part.gate is None else part.weight * part.gate.view(-1, 1, 1, 1)).mT
    return matrices if several else matrices.contiguous()


_kept: MutableMapping[Tensor, tuple[list[Tensor], Tensor]] = WeakTensorKeyDictionary()


def _kept_matrices(part: Part, several: bool) -> Tensor:
    """The matrices of the last call with the same weights; compared by value, however they were changed."""
    given = [part.weight] if part.gate is None else [part.weight, part.gate]
    found = _kept.get(part.weight)
    if found is not None and len(found[0]) == len(given) and all(map(_same, found[0], given)):
        return found[1]
    matrices = _matrices(part, several)
    _kept[part.weight] = [each.clone() for each in given], matrices
    return matrices


def _same(first: Tensor, second: Tensor) -> bool:
    """`torch.equal`, which takes five times as long."""
    return np.array_equal(first.detach().numpy(), second.detach().numpy())


def _by_mode(rows: Tensor) -> Tensor:
    """Coefficients as a stack of matrices `(line, (part, channel))`."""
    return rows.permute(2, 0, 1, 3, 4).reshape(rows.shape[2], -1, rows.shape[3] * rows.shape[4])


def _by_line(stack: Tensor, like: Tensor) -> Tensor:
    """The stack as coefficients."""
    batch, lines, modes = like.shape[:3]
    return stack.view(modes, batch, lines, 2, -1).permute(1, 2, 0, 3, 4)


def _analysed(matrix: Tensor, cells: Tensor, axis: int) -> Tensor:
    """Coefficients of some samples along an axis."""
    modes, channels = len(matrix) // 2, cells.shape[-1]
    if cells.ndim == 3:
        found = product(matrix, in_memory(cells).flatten(1))
        return found.view(modes, 2, len(cells), 1, channels).permute(2, 3, 0, 1, 4)
    lines = cells[0, ..., 0].numel() // cells.shape[axis + 1]
    rows = cells.new_empty(len(cells), lines, modes, 2, channels)
    for at in groups_of(cells, NEAR):
        along = cells[at].movedim(axis + 1, 0)
        found = product(matrix, along.reshape(len(along), -1))
        rows[at] = found.view(modes, 2, -1, lines, channels).permute(2, 3, 0, 1, 4)
    return rows


def _synthesised(
    coefficients: list[Tensor], matrices: list[Tensor], shape: Sequence[int], target: Tensor | None = None
) -> Tensor:
    """The cells of coefficients along all axes, summed, in `target` if there is one."""
    space, channels = list(shape[1:-1]), shape[-1]
    if len(space) == 1:
        rows = coefficients[0].permute(2, 3, 0, 1, 4).reshape(matrices[0].shape[1], -1)
        found = in_memory(product(matrices[0], rows).view(*space, -1, channels))
        return found if target is None else target.copy_(found)
    target = coefficients[0].new_empty(shape) if target is None else target
    for at in groups_of(target, NEAR):
        fields = []
        for axis, (rows, matrix) in enumerate(zip(coefficients, matrices, strict=True)):
            found = product(matrix, rows[at].permute(2, 3, 0, 1, 4).reshape(matrix.shape[1], -1))
            others = space[:axis] + space[axis + 1 :]
            fields.append(found.view(space[axis], -1, *others, channels).movedim(0, axis + 1))
        torch.add(fields[0], fields[1], out=target[at])
        for each in fields[2:]:
            target[at] += each
    return target


def _by_sample(factor: Tensor, several: bool) -> tuple[Tensor, Tensor]:
    """Real parts `(batch, 1, mode, 1 or 2, channel)`, once for each part on several axes, and imaginary ones."""
    real, imaginary = factor.transpose(2, 3).contiguous().permute(2, 0, 1, 3)[:, None].unbind(3)
    return (torch.stack([real, real], dim=3), imaginary.contiguous()) if several else (real.unsqueeze(3), imaginary)
