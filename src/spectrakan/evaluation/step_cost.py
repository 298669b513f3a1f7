"""What one training step of an operator costs on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import torch

from spectrakan.models import Operator


def step_seconds(model: Operator, space: Sequence[int], *, batch: int = 1, repeats: int = 3) -> float:
    """CPU seconds of one forward and backward pass on random fields: the median after one pass to warm up.

    CPU time of all threads, not time on the wall, so that other work on the machine matters less. A model without
    parameters has no backward pass.
    """
    facts = model.signature
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(batch, facts.history, *space, facts.in_channels, generator=generator)
    params = torch.randn(batch, facts.num_params, generator=generator) if facts.num_params else None
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        loss = model(x, params).square().mean()
        if loss.requires_grad:
            loss.backward()
        seconds.append(time.process_time() - start)
        model.zero_grad(set_to_none=True)
    return statistics.median(seconds[1:])
