"""Batch statistics over all processes, so that two of them equal one with the doubled batch.

With n cells and samples on all processes together: mu = (1/n) sum x, var = (1/n) sum x² - mu²; both sums are
exchanged forth and, for the gradient, back. Torch's own SyncBatchNorm does this on GPUs only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce
from torch.nn.modules.batchnorm import _BatchNorm


class SyncedBatchNorm(_BatchNorm):
    """Batch normalisation whose mean and variance are those of the batches of all processes."""

    def forward(self, x: Tensor) -> Tensor:
        """`(batch, channel, *space)` to the same; outside training as any batch normalisation."""
        if not self.training:
            return super().forward(x)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        count = torch.full((1,), float(x.numel() // x.shape[1]), dtype=x.dtype, device=x.device)
        local = torch.cat([x.sum(axes), x.square().sum(axes), count])
        sums = all_reduce(local)
        total, squares, number = sums.split([x.shape[1], x.shape[1], 1])
        mean = total / number
        variance = squares / number - mean.square()
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            share = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.running_mean.lerp_(mean.detach(), share)
            self.running_var.lerp_((variance * (number / (number - 1))).detach(), share)
        shape = [1, -1, *[1] * (x.ndim - 2)]
        scaled: Tensor = (x - mean.view(shape)) * (variance + self.eps).rsqrt().view(shape)
        return scaled if self.weight is None else scaled * self.weight.view(shape) + self.bias.view(shape)

    def _check_input_dim(self, input: Tensor) -> None:  # noqa: A002 - torch's name
        """Whatever `forward` takes."""


def synchronise_norms(module: nn.Module) -> None:
    """Make all batch normalisations of a module synced ones, with the weights that they have."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
            # They differ in `forward` alone.
            layer.__class__ = SyncedBatchNorm  # type: ignore[assignment]
