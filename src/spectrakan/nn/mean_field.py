"""The mean training field, stored on its grid and given on any other.

On other grids it is the mean over larger cells or on lines between centres (`numerics/resample`). Zero before `fit`.
Shapes: `(*space, field)`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from spectrakan.errors import ShapeError
from spectrakan.nn.axis import Axis
from spectrakan.numerics.quadrature import to_float64
from spectrakan.numerics.resample import along_axis, transfer_matrix


class MeanField(nn.Module):
    """A field that is a buffer, not a weight; loaded states bring their own size."""

    values: Tensor

    def __init__(self, num_axes: int, num_fields: int) -> None:
        super().__init__()
        self.num_axes = num_axes
        self._allocate((1,) * num_axes, torch.zeros(num_fields))

    def forward(self, axes: Sequence[Axis]) -> Tensor:
        """The field on these axes."""
        field = self.values
        for dim, axis in enumerate(axes):
            edges, whole = self.get_buffer(f"edges_{dim}"), axis.whole or axis
            if not self._same(dim, whole):
                matrix = transfer_matrix(edges, whole.edges.to(edges), periodic=axis.periodic)
                field = along_axis(matrix.to(field), field, dim)
            if whole is not axis:
                field = field.narrow(dim, axis.start, axis.cells)
        return field

    def _same(self, dim: int, axis: Axis) -> bool:
        """Whether an axis has the stored cells; of equal ones only the number counts, so that programs trace."""
        if torch.compiler.is_exporting() or self.values.shape[dim] != axis.cells:
            return False
        if self.equal_cells and axis.uniform:
            return True
        edges = self.get_buffer(f"edges_{dim}")
        return torch.equal(edges, axis.edges.to(edges))

    @torch.no_grad()
    def fit(self, fields: Iterable[Tensor], axes: Sequence[Axis], units: Callable[[Tensor], Tensor]) -> None:
        """Store, in these units, the mean over all `(samples, *space, field)`, in float64; all on these axes."""
        total, count = None, 0
        for field in fields:
            sums = to_float64(field).sum(0)
            if total is not None and sums.shape != total.shape:
                raise ShapeError(f"windows must lie on one grid, got {tuple(sums.shape)} after {tuple(total.shape)}")
            total, count = sums if total is None else total + sums, count + len(field)
        if total is None:
            return
        self._allocate(tuple(axis.total for axis in axes), self.values)
        for dim, axis in enumerate(axes):
            self.get_buffer(f"edges_{dim}").copy_((axis.whole or axis).edges)
            total = total if axis.space is None else axis.space.join(total, dim)
        self.equal_cells = all(axis.uniform for axis in axes)
        self.values.copy_(units((total / count).to(self.values)))

    def resize(self, shape: Sequence[int]) -> None:
        """Take the size of a field that will be loaded; a shape of another kind is left to the loader to refuse."""
        if len(shape) == self.num_axes + 1 and shape[-1] == self.values.shape[-1]:
            self._allocate(shape[:-1], self.values)

    def _allocate(self, cells: Sequence[int], like: Tensor) -> None:
        """Zeros on so many equal cells."""
        self.equal_cells = True
        self.register_buffer("values", like.new_zeros(*cells, like.shape[-1]))
        for dim, count in enumerate(cells):
            self.register_buffer(f"edges_{dim}", torch.linspace(0, 1, count + 1, device=like.device).to(like))

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take the size of the field from the state."""
        if f"{prefix}values" in state:
            self.resize(state[f"{prefix}values"].shape)
        super()._load_from_state_dict(state, prefix, *rest)
        stored = [self.get_buffer(f"edges_{dim}") for dim in range(self.num_axes)]
        self.equal_cells = all(torch.allclose(edges, torch.linspace(0, 1, len(edges)).to(edges)) for edges in stored)
