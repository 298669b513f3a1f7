"""Persistence: tomorrow is like today. The floor for everything that evolves in time.

u_next(x) = u_last(x)

Where the output is not the next frame of the input's own fields (steady tasks, other fields) there is no last
frame to keep; the answer is then the mean of the output's units (zero at unit scale), the same everywhere.
There is nothing to train: the model has no parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

from spectrakan.config import settings
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis


@settings
class PersistenceConfig:
    """There is nothing to choose."""


class Persistence(Operator):
    """The last frame; see the file's equation."""

    name = "persistence"
    config: PersistenceConfig

    def __init__(self, signature: OperatorSignature, config: PersistenceConfig) -> None:
        super().__init__(signature, config, predict="direct")

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The last frame, or zero at unit scale."""
        if self.signature.evolves:
            return history[:, -1]
        return history.new_zeros(*history[:, -1, ..., 0].shape, self.signature.out_channels)

    def prepare(self, windows: Iterable[Window]) -> None:
        """Nothing to set up."""
