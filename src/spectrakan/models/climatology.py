"""Climatology: the mean of all training fields, whatever the input. The floor for steady tasks.

u_next(x) = mean over samples and frames of u(x)

`prepare` takes the mean in physical units, in float64, and keeps it at unit scale on the grid of the training data;
other grids get means over larger cells or lines between centres (`numerics/sampling`). Until then the answer is
the mean of the output's units. There is nothing to train: the field is a buffer, and the model has no parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis
from spectrakan.numerics.sampling import along_axis, transfer_matrix

Count = Annotated[int, Field(ge=1)]


@settings
class ClimatologyConfig:
    """Only the size of what is kept."""

    cells: tuple[Count, ...] = ()
    """Cells along each axis of the kept mean; set by `prepare`, empty before."""


class Climatology(Operator):
    """The mean field; see the file's equation."""

    name = "climatology"
    config: ClimatologyConfig
    mean_field: Tensor

    def __init__(self, signature: OperatorSignature, config: ClimatologyConfig) -> None:
        super().__init__(signature, config, predict="direct")
        if config.cells and len(config.cells) != signature.space_dims:
            raise ConfigError(f"cells names {len(config.cells)} axes, the signature has {signature.space_dims}")
        self._keep(config.cells or (1,) * signature.space_dims)

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The mean field on this grid, once for each sample."""
        field = self.mean_field
        for place, axis in enumerate(axes):
            edges = self.get_buffer(f"edges_{place}")
            if field.shape[place] != axis.cells or not torch.equal(edges, axis.edges.to(edges)):
                matrix = transfer_matrix(edges, axis.edges.to(edges), periodic=axis.periodic)
                field = along_axis(matrix.to(field), field, place)
        return field.to(history.dtype).expand(history.shape[0], *field.shape)

    @torch.no_grad()
    def prepare(self, windows: Iterable[Window]) -> None:
        """The mean over all targets of all windows, which must lie on one grid."""
        total, count, axes = None, 0, None
        for window in windows:
            sums = window.targets.double().flatten(0, 1).sum(0)
            if total is not None and sums.shape != total.shape:
                raise ShapeError(f"windows must lie on one grid, got {tuple(sums.shape)} after {tuple(total.shape)}")
            total = sums if total is None else total + sums
            count += window.targets.shape[0] * window.targets.shape[1]
            axes = self.axes(window.inputs, window.grid) if axes is None else axes
        if total is None or axes is None:
            return
        self._keep(tuple(axis.cells for axis in axes))
        for place, axis in enumerate(axes):
            self.get_buffer(f"edges_{place}").copy_(axis.edges)
        self.mean_field.copy_(self.output_units.normalize((total / count).to(self.output_units.mean)))
        self.config = dataclasses.replace(self.config, cells=tuple(self.mean_field.shape[:-1]))

    def _keep(self, cells: tuple[int, ...]) -> None:
        """Make room for a field of so many cells, at first zero on equal cells."""
        like = self.output_units.mean
        self.register_buffer("mean_field", like.new_zeros(*cells, self.signature.out_channels))
        for place, count in enumerate(cells):
            self.register_buffer(f"edges_{place}", torch.linspace(0, 1, count + 1).to(like))
