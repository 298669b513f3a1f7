"""How weights move: the optimizer, its learning rate over the steps, and the moving average of weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from spectrakan.training.settings import TrainingSettings


def build_optimizer(parameters: list[nn.Parameter], config: TrainingSettings) -> torch.optim.Optimizer:
    """AdamW; a model without weights gets one of nothing, so that it is scored like the others."""
    kept: list[Tensor] = [*parameters] or [torch.zeros(0)]
    # One kernel for a tensor's whole update, which matters to a model of many small tensors.
    return torch.optim.AdamW(kept, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True)


def rate_factor(step: int, total: int, *, warmup: float = 0.1) -> float:
    """What the peak rate is multiplied by at `step` of `total`: a pure function, so there is nothing to save.

    One cycle: cosine from 1/25 up to 1 over the share `warmup`, then cosine down to 1e-4 (Smith 2018).

    >>> [round(rate_factor(step, 101, warmup=0.3), 3) for step in (0, 30, 100)]
    [0.04, 1.0, 0.0]
    """
    peak = warmup * max(total - 1, 1)
    if step < peak:
        return _between(1 / 25, 1.0, step / peak)
    return _between(1.0, 1e-4, min((step - peak) / max(total - 1 - peak, 1), 1.0))


def _between(start: float, end: float, share: float) -> float:
    """Half a cosine wave from `start` to `end`."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


class WeightAverage:
    """The exponential moving average a_n = d_n a_{n-1} + (1 - d_n) w_n, d_n = min(d, (1 + n) / (10 + n)).

    A decay of 0 keeps none, and `applied` changes nothing. The decay starts low, so that the first, random weights
    are soon forgotten. `constrain` brings the model back to where its weights have to be: a mean of such weights
    need not be there.
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
