"""A grid that is cut along its first axis among processes, and the sums that the parts exchange.

Part p of N holds the successive cells [start, stop) of the first axis. What a layer needs from all cells is a sum,

    s = sum_p s_p,     ds/dv_p = ds_p/dv_p,

so a result that all parts compute alike from s has, in every process, the gradient of N times that result by its own
part; the mean over processes of the parameters' gradients, which data parallelism takes anyway, is the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from spectrakan.errors import ShapeError
from spectrakan.fields.grid import Grid


@dataclass(eq=False)
class SpaceGroup:
    """The processes that share one field, in the order of its parts."""

    group: dist.ProcessGroup | None = None
    """None: all processes."""
    device: str = "cpu"
    """Where tensors are exchanged."""
    exchanged: int = field(default=0, init=False)
    """Bytes of all tensors that this process has put into a sum, a maximum or a gathering."""

    @property
    def rank(self) -> int:
        """Number of this process's part."""
        return dist.get_rank(self.group)

    @property
    def size(self) -> int:
        """Number of parts."""
        return dist.get_world_size(self.group)

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all parts; its gradient is the sum of all parts' gradients."""
        total: Tensor = _Sum.apply(tensor, self)  # type: ignore[no-untyped-call]
        return total

    def largest(self, tensor: Tensor) -> Tensor:
        """The largest numbers of all parts, without a gradient."""
        return self._reduced(tensor.detach(), dist.ReduceOp.MAX)

    def _reduced(self, tensor: Tensor, operation: Any) -> Tensor:
        found = tensor.to(self.device, copy=True, memory_format=torch.contiguous_format)
        self.exchanged += found.numel() * found.element_size()
        dist.all_reduce(found, op=operation, group=self.group)
        return found.to(tensor.device)

    def each(self, tensor: Tensor) -> list[Tensor]:
        """A tensor of equal shape of every part, without a gradient."""
        mine = tensor.detach().to(self.device).contiguous()
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        self.exchanged += mine.numel() * mine.element_size()
        dist.all_gather(parts, mine, group=self.group)
        return [part.to(tensor.device) for part in parts]

    def join(self, part: Tensor, dim: int) -> Tensor:
        """The whole of tensors that are cut along one axis, without a gradient, on all processes."""
        rows = part.detach().movedim(dim, 0)
        counts = [int(count) for count in self.each(torch.tensor([rows.shape[0]]))]
        padded = rows.new_zeros((max(counts), *rows.shape[1:]))  # processes exchange tensors of equal shape
        padded[: rows.shape[0]] = rows
        parts = [each[:count] for each, count in zip(self.each(padded), counts, strict=True)]
        return torch.cat(parts).movedim(0, dim)

    def ends(self, cells: int) -> tuple[int, ...]:
        """Where `cells` cells are cut, `(N + 1,)`: into equal parts, the first of them longer by one if need be."""
        each, more = divmod(cells, self.size)
        return tuple(part * each + min(part, more) for part in range(self.size + 1))


class _Sum(torch.autograd.Function):
    """All-reduce forth and, for the gradient, back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: SpaceGroup) -> Tensor:
        ctx.group = group
        return group._reduced(tensor, dist.ReduceOp.SUM)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.group.sum(gradients[0]), None


@dataclass(frozen=True, eq=False)
class GridPart(Grid):
    """The cells of a whole grid that one process holds; lengths and volumes are shares of the whole.

    Fields on it are handed to an operator with `grid=part`, and every output is the part of the whole output.
    """

    whole: Grid = None  # type: ignore[assignment]
    space: SpaceGroup = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Nothing to check: the whole was checked."""

    @classmethod
    def of(cls, whole: Grid, space: SpaceGroup) -> GridPart:
        """The part of this process."""
        start, stop = space.ends(whole.shape[0])[space.rank : space.rank + 2]
        return cls(
            (whole.coordinates[0][start:stop], *whole.coordinates[1:]),
            (whole.edges[0][start : stop + 1], *whole.edges[1:]),
            (whole.weights[0][start:stop], *whole.weights[1:]),
            whole.boundary,
            whole,
            space,
        )

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Both ends of the whole domain along each axis."""
        return self.whole.bounds

    def is_uniform(self) -> bool:
        """Whether all cells of the whole are equal."""
        return self.whole.is_uniform()

    def cut(self, field: Any, dim: int) -> Any:
        """The part of this process of a whole field, array or tensor, whose first axis of space is `dim`."""
        start, stop = self.space.ends(self.whole.shape[0])[self.space.rank : self.space.rank + 2]
        if field.shape[dim] != self.whole.shape[0]:
            raise ShapeError(f"expected {self.whole.shape[0]} cells along axis {dim}, got {field.shape[dim]}")
        return field[(slice(None),) * dim + (slice(start, stop),)]

    def join(self, part: Tensor, dim: int) -> Tensor:
        """The whole field from every process's part, without a gradient, on all of them."""
        return self.space.join(part, dim)


def whole_of(grid: Grid) -> Grid:
    """The whole grid of a part; any other grid itself."""
    return grid.whole if isinstance(grid, GridPart) else grid


def joined(field: Tensor, grid: Grid | None, dim: int) -> Tensor:
    """The whole of a field whose first axis of space is `dim`, without a gradient where it is cut."""
    return grid.join(field, dim) if isinstance(grid, GridPart) else field


def summed(tensor: Tensor, grid: Grid | None) -> Tensor:
    """Sums over the cells of a grid: of all parts where it is cut, else as they are."""
    return grid.space.sum(tensor) if isinstance(grid, GridPart) else tensor
