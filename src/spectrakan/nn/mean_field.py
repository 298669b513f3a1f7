"""The mean training field, kept on the grid it was measured on and given on any other.

Other grids get means over larger cells or lines between centres (`numerics/sampling`). Before `fit` it is zero.
Shapes: `(*space, field)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spectrakan.errors import ShapeError
from spectrakan.nn.axis import Axis
from spectrakan.numerics.float64 import to_float64
from spectrakan.numerics.sampling import along_axis, transfer_matrix


class MeanField(nn.Module):
    """A field that is a buffer, not a weight; loaded states bring their own size."""

    values: Tensor

    def __init__(self, num_axes: int, num_fields: int) -> None:
        super().__init__()
        self.num_axes = num_axes
        self._keep((1,) * num_axes, torch.zeros(num_fields))

    def forward(self, axes: Sequence[Axis]) -> Tensor:
        """The field on these axes."""
        field = self.values
        for place, axis in enumerate(axes):
            edges = self.get_buffer(f"edges_{place}")
            if not self._same(place, axis):
                matrix = transfer_matrix(edges, axis.edges.to(edges), periodic=axis.periodic)
                field = along_axis(matrix.to(field), field, place)
        return field

    def _same(self, place: int, axis: Axis) -> bool:
        """Whether an axis has the kept cells; of equal ones the number tells, so that programs can be traced."""
        if self.values.shape[place] != axis.cells:
            return False
        if self.equal_cells and axis.uniform:
            return True
        edges = self.get_buffer(f"edges_{place}")
        return torch.equal(edges, axis.edges.to(edges))

    @property
    def cells(self) -> tuple[int, ...]:
        """Cells along each axis of the kept field."""
        return tuple(self.values.shape[:-1])

    @torch.no_grad()
    def fit(self, fields: Iterable[Tensor], axes: Sequence[Axis], units: Callable[[Tensor], Tensor]) -> None:
        """Keep, in these units, the mean over all `(samples, *space, field)`, taken in float64; all on these axes."""
        total, count = None, 0
        for field in fields:
            sums = to_float64(field).sum(0)
            if total is not None and sums.shape != total.shape:
                raise ShapeError(f"windows must lie on one grid, got {tuple(sums.shape)} after {tuple(total.shape)}")
            total, count = sums if total is None else total + sums, count + len(field)
        if total is None:
            return
        self._keep(tuple(axis.cells for axis in axes), self.values)
        for place, axis in enumerate(axes):
            self.get_buffer(f"edges_{place}").copy_(axis.edges)
        self.equal_cells = all(axis.uniform for axis in axes)
        self.values.copy_(units((total / count).to(self.values)))

    def make_room(self, coming: Tensor | None) -> None:
        """Be as large as a field that will be loaded; one of another kind is left to who loads it to refuse."""
        if coming is not None and coming.ndim == self.num_axes + 1 and coming.shape[-1] == self.values.shape[-1]:
            self._keep(coming.shape[:-1], self.values)

    def _keep(self, cells: Sequence[int], like: Tensor) -> None:
        """Make room for a field of so many cells, at first zero on equal cells."""
        self.equal_cells = True
        self.register_buffer("values", like.new_zeros(*cells, like.shape[-1]))
        for place, count in enumerate(cells):
            self.register_buffer(f"edges_{place}", torch.linspace(0, 1, count + 1).to(like))

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take the size of the field from the state."""
        self.make_room(state.get(f"{prefix}values"))
        super()._load_from_state_dict(state, prefix, *rest)
        kept = [self.get_buffer(f"edges_{place}") for place in range(self.num_axes)]
        self.equal_cells = all(torch.allclose(edges, torch.linspace(0, 1, len(edges)).to(edges)) for edges in kept)
