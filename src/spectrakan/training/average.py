"""The exponential moving average of weights: a_n = d_n a_{n-1} + (1 - d_n) w_n, d_n = min(d, (1 + n) / (10 + n))."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """A smoothed copy of a model's weights; a decay of 0 keeps none and `applied` changes nothing.

    The decay starts low, so that the first, random weights are soon forgotten. `constrain` brings the model back
    to where its weights have to be: a mean of such weights need not be there.
    """

    def __init__(self, model: nn.Module, decay: float, constrain: Callable[[], None] | None = None) -> None:
        self.model, self.constrain = model, constrain
        self.decay = decay
        self.weights: dict[str, Tensor] = {}
        if decay > 0:
            self.weights = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after step number `step`, counted from 1."""
        if not self.weights:
            return
        decay = min(self.decay, (1 + step) / (10 + step))
        current = dict(self.model.named_parameters())
        torch._foreach_lerp_(list(self.weights.values()), [current[name].data for name in self.weights], 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with its averaged weights in place, for validation and for keeping."""
        if not self.weights:
            yield
            return
        current = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        try:
            self._put(self.weights)
            if self.constrain is not None:
                self.constrain()
            yield
        finally:
            self._put(current)

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from a saved average."""
        for name, tensor in self.weights.items():
            tensor.copy_(weights[name])

    @torch.no_grad()
    def _put(self, weights: Mapping[str, Tensor]) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.copy_(weights[name])
