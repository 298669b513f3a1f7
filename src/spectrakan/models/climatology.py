"""Climatology: the mean of all training fields, whatever the input. The floor for steady tasks.

u_next(x) = mean over samples and frames of u(x)

An operator that predicts departures from the mean field (`nn/mean_field`) and always answers that there are none.
Until `prepare` the answer is the mean of the output's units. There is nothing to train: the model has no parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from spectrakan.config import settings
from spectrakan.fields import OperatorSignature
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis


@settings
class ClimatologyConfig:
    """There is nothing to choose."""


class Climatology(Operator):
    """The mean field; see the file's equation."""

    name = "climatology"
    config: ClimatologyConfig

    def __init__(self, signature: OperatorSignature, config: ClimatologyConfig) -> None:
        super().__init__(signature, config, predict="departure")

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """No departure."""
        return history.new_zeros(history.shape[0], *history.shape[2:-1], self.signature.out_channels)
