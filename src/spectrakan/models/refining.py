"""Operators that work on the cells of their training where a field comes on coarser ones.

    u_next = M P(R u),     R: cells cut in two, again and again (`split_cells`),     M: means over the cells given

A front that fills three cells of training fills one and a half of cells twice as wide, and looks like nothing that
was learnt; the polynomial through the means around a cell knows better where in the cell it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.operator import Operator, Predict
from spectrakan.nn.axis import Axis, uniform_axis
from spectrakan.numerics.resample import block_mean, split_cells


class RefiningOperator(Operator):
    """An operator with the file's equation, if `refines`, where equal cells are 2, 4, 8 .. times those of training.

    On all other cells, and inside an exported program, the network works on the cells as they come.
    """

    trained_cells: Tensor

    def __init__(
        self, signature: OperatorSignature, config: Any, *, predict: Predict, refines: bool, **gates: Any
    ) -> None:
        super().__init__(signature, config, predict=predict, **gates)
        self.refines = refines
        if refines:  # zeros: not trained yet
            self.register_buffer("trained_cells", torch.zeros(signature.space_dims, dtype=torch.int64))

    def prepare(self, windows: Iterable[Window]) -> None:
        """What every operator prepares, and the cells of training."""
        windows = list(windows)
        super().prepare(windows)
        if self.refines and windows:
            self.trained_cells.copy_(torch.tensor(windows[0].inputs.shape[2:-1]))

    def on_axes(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The file's equation."""
        splits = self.splits(axes)
        if not any(splits):
            return super().on_axes(history, params, axes)
        finer = []
        for place, (axis, times) in enumerate(zip(axes, splits, strict=True), start=2):
            for _ in range(times):
                history = split_cells(history, place, periodic=axis.periodic)
            finer.append(uniform_axis(axis.cells * 2**times, axis.periodic) if times else axis)
        answer = super().on_axes(history, params, finer)
        for place, times in enumerate(splits, start=1):
            answer = block_mean(answer, place, 2**times)
        return answer

    def splits(self, axes: Sequence[Axis]) -> list[int]:
        """How often the cells along each axis are cut in two before the network sees them."""
        if not self.refines or torch.compiler.is_compiling():
            return [0] * len(axes)
        return [_times(axis, trained) for axis, trained in zip(axes, self.trained_cells.tolist(), strict=True)]


def _times(axis: Axis, trained: int) -> int:
    times = (trained // axis.cells).bit_length() - 1
    return times if axis.uniform and times > 0 and axis.cells * 2**times == trained else 0
