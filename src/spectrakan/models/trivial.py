"""Trivial baselines without weights: persistence and climatology.

persistence   u_next(x) = u_last(x), or where the output is no next frame of the input the mean of the output's units
climatology   u_next(x) = mean over samples and frames of u(x), whatever the input

Both are the stages around a network that gives zero (`models/stages`): increments of zero, departures of zero from
the mean field. There is nothing to train and nothing to filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Predict, Stages
from spectrakan.nn.axis import Axis


@settings
class PersistenceConfig:
    """There is nothing to set."""


@settings
class ClimatologyConfig:
    """There is nothing to set."""


class _Zero(Operator):
    """A network that gives zero."""

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Zero everywhere."""
        return history.new_zeros(history.shape[0], *history.shape[2:-1], self.network_out_channels)


class Persistence(_Zero):
    """The last frame; see the file's head."""

    name = "persistence"
    config: PersistenceConfig

    def __init__(self, signature: OperatorSignature, config: PersistenceConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, fixed(stages, "increment" if signature.evolves else "direct", self.name))
        if signature.evolves:  # nothing depends on data
            self.fitted.fill_(True)
            self._warns = False


class Climatology(_Zero):
    """The mean field; see the file's head."""

    name = "climatology"
    config: ClimatologyConfig

    def __init__(self, signature: OperatorSignature, config: ClimatologyConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, fixed(stages, "mean_field", self.name))


def fixed(stages: Stages | None, predict: Predict, name: str) -> Stages:
    """The stages of a baseline that allows one kind of prediction, without products and without a filter."""
    given = stages or Stages()
    if given.predict not in ("auto", predict):
        raise ConfigError(f"{name} has predict='{predict}' here, got predict='{given.predict}'; leave it out")
    if given.multiplicative_readout:
        raise ConfigError(f"{name} has no readout: leave out multiplicative_readout")
    return replace(given, predict=predict, noise_level=0.0)
