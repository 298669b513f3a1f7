"""A user's own network as an operator, with all the stages around it.

The network is any `nn.Module` that is called as `module(x, params=None, grid=None)`:
`x` `(batch, history, *space, in)` and `params` `(batch, num_params)` at unit scale, `grid` on the unit box (None
where all cells are equal), to `(batch, *space, out)` at unit scale. With a multiplicative readout it gives twice as
many channels.
"""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from spectrakan.config import build_settings, settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Grid, OperatorSignature
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages
from spectrakan.nn.axis import Axis

Factory = Callable[..., nn.Module]
"""Called as `factory(signature, **settings)`, gives the network."""


@settings
class ModuleConfig:
    """Settings of a user's own network."""

    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What its factory was called with, beside the signature."""


class ModuleOperator(Operator):
    """The module as the network of an operator."""

    config: ModuleConfig

    def __init__(
        self,
        name: str,
        module: nn.Module | Factory,
        signature: OperatorSignature,
        config: ModuleConfig,
        stages: Stages,
    ) -> None:
        super().__init__(signature, config, stages)
        self.name = name
        if not isinstance(module, nn.Module):
            outputs = dataclasses.replace(signature, out_channels=self.network_out_channels, out_fields=())
            given = outputs if stages.multiplicative_readout else signature
            try:
                inspect.signature(module).bind(given, **config.settings)
            except TypeError as problem:
                takes = f"takes {inspect.signature(module)}, and is called with a signature and the model's settings"
                raise ConfigError(f"the factory of model '{name}' {takes}: {problem}") from None
            module = module(given, **config.settings)
        if not isinstance(module, nn.Module):
            raise ConfigError(
                f"the factory of model '{name}' must return a torch.nn.Module, got {type(module).__name__}"
            )
        try:
            inspect.signature(module.forward).bind(None, params=None, grid=None)
        except TypeError:
            raise ConfigError(
                f"{name} must be called as module(x, params=None, grid=None), its forward takes "
                f"{inspect.signature(module.forward)}; add the missing arguments"
            ) from None
        self.module = module

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Call the module and check the shape of its output."""
        grid = None
        if not all(axis.uniform for axis in axes):
            centres, edges, weights = zip(*((axis.centres, axis.edges, axis.weights) for axis in axes), strict=True)
            grid = Grid(centres, edges, weights, self.signature.boundary)
        output = self.module(history, params=params, grid=grid)
        expected = (history.shape[0], *history.shape[2:-1], self.network_out_channels)
        if not isinstance(output, Tensor) or tuple(output.shape) != expected:
            came, given = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__, history.shape
            raise ShapeError(
                f"{self.name} must map {tuple(given)} = (batch, history, *space, fields) to {expected}, got {came}"
            )
        return output


def wrap_module(module: nn.Module, signature: OperatorSignature, **stages: Any) -> ModuleOperator:
    """A module as an operator under the name of its class; `stages` as of `models/stages`.

    >>> class Last(nn.Module):
    ...     def forward(self, x, params=None, grid=None):
    ...         return 0 * x[:, -1]
    >>> signature = OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1)
    >>> wrap_module(Last(), signature, noise_level=0.0).name
    'Last'
    """
    chosen = build_settings(Stages, stages, where=type(module).__name__)
    return ModuleOperator(type(module).__name__, module, signature, ModuleConfig(), chosen)
