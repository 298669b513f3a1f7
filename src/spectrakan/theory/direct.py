"""Direct linear maps between the nodes of a program, and what they make of bounds entry by entry.

From the output of node j to an input of node m, everything between them held still, a program is linear: M_jm. Changes
of at most s in the output of j give at most |M_jm| s in m. Columns of M come from runs of the program that is cut at
its nodes (`program`). A map between fields of many cells is known from fewer of them if it is

    local    the same matrix in every cell,
    axial    a matrix of its own along each axis, the same on all lines:  M v = sum_a M_a v,

and neither is assumed: the map of the assumed form must give what the program gives for `PROBES` random vectors, up to
rounding. Of two maps that differ, rows differ on a random vector with probability one (Freivalds).
Shapes: outputs and inputs of nodes flat, without batch; fields `(channel, *space)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.theory.norms import nan_to_inf
from spectrakan.theory.program import Program

Key = tuple[int, int]
"""Node and place among its inputs."""
Sizes = dict[Key, Tensor]

BATCH_NUMBERS = 1 << 21
"""Numbers of the largest node in one run."""
PROBES = 3
"""Random vectors that an assumed form is checked with."""
DENSE = 512
"""Outputs of a node up to which all columns are computed without further thought."""
MOST_COLUMNS = 1 << 15
"""Outputs of a node up to which they are computed where its maps have no known form."""
SAME = 1e-9
"""Largest difference between the map and its assumed form, as a share of the largest value."""


class TooLargeError(ConfigError):
    """A model whose maps have no known form and too many columns."""


class DirectMaps:
    """All direct maps of a program on fields of `space` cells."""

    def __init__(self, program: Program, space: Sequence[int]) -> None:
        self.program, self.space = program, tuple(space)
        self.batch = batch_of(program)

    def spread(self, node: int, sizes: Tensor) -> Sizes:
        """|M| of all inputs that depend on a node's output directly: sizes `(units, k)` to `(units, k)` each."""
        units = sizes.shape[0]
        probes = torch.randn(PROBES, units, dtype=torch.float64, generator=torch.Generator().manual_seed(node))
        found = {key: value for key, value in self._columns(node, probes).items() if bool(value.any())}
        field = self._as_field(sizes.T, self._shape_of_output(node))
        if not found:
            return {}
        if units > DENSE and field is not None and len(self.space) > 1:
            tested = self._as_field(probes, self._shape_of_output(node))
            known = {key: value for key in found if (value := self._as_field(found[key], self._shape_of(key))) is not None}
            result = self._structured(node, field, tested, known) if tested is not None and len(known) == len(found) else None
            if result is not None:
                return {key: self._flat(value, self._shape_of(key)).T for key, value in result.items()}
        if units > MOST_COLUMNS:
            raise TooLargeError(f"node {node} has {units} outputs and maps of no known form")
        return self._dense(node, sizes, found)

    def _dense(self, node: int, sizes: Tensor, found: Sizes) -> Sizes:
        total = {key: torch.zeros(value.shape[1], sizes.shape[1], dtype=torch.float64) for key, value in found.items()}
        for places in torch.arange(sizes.shape[0]).split(self.batch):
            columns = self._columns(node, _units(places, sizes.shape[0]))
            for key in total:
                total[key] += nan_to_inf(columns[key].abs().T @ sizes[places])
        return total

    def _structured(self, node: int, field: Tensor, probes: Tensor, found: Sizes) -> Sizes | None:
        """Local and axial maps on fields `(k, channel, *space)`; None where a map is neither."""
        channels, middle = field.shape[1], tuple(cells // 2 for cells in self.space)
        result: Sizes = {}
        at = torch.zeros(channels, channels, *self.space, dtype=torch.float64)
        at[(torch.arange(channels), torch.arange(channels), *middle)] = 1.0
        columns = self._responses(node, at, found)
        for key, given in found.items():
            matrix = columns[key][(..., *middle)]
            if _agree(torch.einsum("ci,bc...->bi...", matrix, probes), given):
                result[key] = torch.einsum("ci,bc...->bi...", matrix.abs(), field)
        lines = {key: value for key, value in found.items() if key not in result}
        if not lines:
            return result
        kernels = [self._along(node, axis, middle, lines, channels) for axis in range(len(self.space))]
        for key, given in lines.items():
            axial = _Axial([each[key] for each in kernels], middle)
            if not _agree(axial(probes), given):
                return None
            result[key] = axial.absolute()(field)
        return result

    def _along(self, node: int, axis: int, middle: tuple[int, ...], found: Sizes, channels: int) -> Sizes:
        """Responses along the middle line of an axis to its cells: `(cell, channel, channel out, cell out)`."""
        cells = self.space[axis]
        line: list[int | slice] = list(middle)
        line[axis] = slice(None)
        parts: dict[Key, list[Tensor]] = {key: [] for key in found}
        step = max(1, self.batch // channels)
        for first in range(0, cells, step):
            count = min(step, cells - first)
            at = torch.zeros(count, channels, channels, *self.space, dtype=torch.float64)
            for cell in range(count):
                point = list(middle)
                point[axis] = first + cell
                at[(cell, torch.arange(channels), torch.arange(channels), *point)] = 1.0
            for key, value in self._responses(node, at.flatten(0, 1), found).items():
                parts[key].append(value[(slice(None), slice(None), *line)].unflatten(0, (count, channels)))
        return {key: torch.cat(value) for key, value in parts.items()}

    def _responses(self, node: int, fields: Tensor, found: Sizes) -> Sizes:
        """Fields `(b, channel, *space)` through the maps to fields, a batch at a time."""
        shape = self._shape_of_output(node)
        parts: dict[Key, list[Tensor]] = {key: [] for key in found}
        for chunk in fields.split(self.batch):
            columns = self._columns(node, self._flat(chunk, shape))
            for key in found:
                field = self._as_field(columns[key], self._shape_of(key))
                parts[key] += [] if field is None else [field]
        return {key: torch.cat(value) for key, value in parts.items()}

    def _columns(self, node: int, values: Tensor) -> Sizes:
        """The maps of outputs `(b, units)`, to all inputs `(b, units)` of later nodes."""
        program, dims = self.program, self.program.node_dims
        error = values.view(len(values), *self._shape_of_output(node)).movedim(0, dims[node][-1])
        program.values(program.centre.expand(len(values), *program.centre.shape[1:]), {node: error}, cut=True)
        return {
            (later, place): (value.detach() - centre).movedim(dims[later][place], 0).flatten(1)
            for later in range(node + 1, len(program.rules))
            for place, (value, centre) in enumerate(
                zip(program.calls[later], program.rules[later].centres, strict=False)
            )
        }

    def _shape_of(self, key: Key) -> list[int]:
        node, place = key
        return _without(self.program.rules[node].centres[place].shape, self.program.node_dims[node][place])

    def _shape_of_output(self, node: int) -> list[int]:
        return _without(self.program.rules[node].out.shape, self.program.node_dims[node][-1])

    def _as_field(self, flat: Tensor, shape: list[int]) -> Tensor | None:
        """`(b, units)` as `(b, channel, *space)`, if the shape is that of a field with channels first or last."""
        cells = math.prod(self.space)
        for last in (False, True):
            if shape in ([*self.space, shape[-1]], [cells, shape[-1]]) if last else shape in ([shape[0], *self.space], [shape[0], cells]):
                field = flat.view(len(flat), -1, cells) if not last else flat.view(len(flat), cells, -1).mT
                return field.reshape(len(flat), -1, *self.space)
        return None

    def _flat(self, field: Tensor, shape: list[int]) -> Tensor:
        """The inverse of `_as_field`."""
        first = shape in ([shape[0], *self.space], [shape[0], math.prod(self.space)])
        return field.flatten(1) if first else field.flatten(2).mT.flatten(1)


class _Axial:
    """sum_a M_a v from responses along one line of each axis, `(cell, channel, channel out, cell out)` each.

    In the cell where lines meet the maps of all axes add up; a cell's own response is put together from the lines'.
    """

    def __init__(self, kernels: list[Tensor], middle: tuple[int, ...]) -> None:
        own = [kernel.diagonal(dim1=0, dim2=3).permute(2, 0, 1) for kernel in kernels]
        count = len(kernels)
        total: Tensor = -(count - 1) * own[0][middle[0]].view(*[1] * count, *own[0].shape[1:])
        for axis, part in enumerate(own):
            total = total + part.view(*[-1 if each == axis else 1 for each in range(count)], *part.shape[1:])
        self.own = total
        """`(*space, channel, channel out)`."""
        self.kernels = []
        for kernel in kernels:
            cells, channels, out, _ = kernel.shape
            beside = kernel * (1 - torch.eye(cells, dtype=kernel.dtype)).view(cells, 1, 1, cells)
            self.kernels.append(beside.permute(2, 3, 1, 0).reshape(out * cells, channels * cells))

    def absolute(self) -> _Axial:
        """The same map with absolute values."""
        other = object.__new__(_Axial)
        other.own, other.kernels = self.own.abs(), [kernel.abs() for kernel in self.kernels]
        return other

    def __call__(self, field: Tensor) -> Tensor:
        """`(b, channel, *space)` to `(b, channel out, *space)`."""
        total = torch.einsum("bc...,...ci->bi...", field, self.own)
        for dim, kernel in enumerate(self.kernels, start=2):
            lines = field.movedim((1, dim), (0, 1))
            product = kernel @ lines.flatten(0, 1).flatten(1)
            total = total + product.view(-1, lines.shape[1], *lines.shape[2:]).movedim((0, 1), (1, dim))
        return total


def columns(program: Program, every: int = 1) -> Iterator[tuple[Tensor, list[tuple[Tensor, ...]]]]:
    """Columns of Jacobians by every n-th input: their places, and changes of all inputs of nodes `(b, units)`."""
    count, size = program.centre.numel(), batch_of(program)
    for places in torch.arange(0, count, every).split(size):
        moved = program.centre + _units(places, count).view(len(places), *program.centre.shape[1:])
        program.values(moved)
        yield places, [
            tuple(
                (value.detach() - centre).movedim(dim, 0).flatten(1)
                for value, centre, dim in zip(call, rule.centres, dims, strict=False)
            )
            for call, rule, dims in zip(program.calls, program.rules, program.node_dims, strict=True)
        ]


def batch_of(program: Program) -> int:
    """Samples of one run."""
    largest = max([rule.out.numel() for rule in program.rules], default=1)
    return max(2, min(256, BATCH_NUMBERS // largest))


def _units(places: Tensor, count: int) -> Tensor:
    """Unit vectors, `(places, count)`."""
    units = torch.zeros(len(places), count, dtype=torch.float64)
    units[torch.arange(len(places)), places] = 1.0
    return units


def _agree(one: Tensor, two: Tensor) -> bool:
    return bool((one - two).abs().amax() <= SAME * two.abs().amax())


def _without(shape: Sequence[int], dim: int) -> list[int]:
    return [size for place, size in enumerate(shape) if place != dim]
