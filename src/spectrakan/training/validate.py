"""The error by which the best weights are chosen: of whole rollouts, in physical units.

Mean over samples and fields of ||p - t|| / ||t||, norms over all frames and cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from spectrakan.data.windows import Windows
from spectrakan.fields import Window
from spectrakan.fields.grid_part import summed
from spectrakan.models.operator import Operator
from spectrakan.models.rollout import rollout
from spectrakan.numerics.float64 import to_float64
from spectrakan.training.runtime import Runtime
from spectrakan.training.settings import TrainingSettings


def validator(
    windows: Windows | None, config: TrainingSettings, runtime: Runtime
) -> Callable[[Operator], float | None]:
    """The error of a model on these windows; None where there are none.

    Processes share the samples; a rollout that is not finite makes the error infinite.
    """

    def validate(model: Operator) -> float | None:
        if windows is None:
            return None
        mine = range(runtime.data_rank, len(windows), runtime.data_size)
        batches = (mine[first : first + config.batch_size] for first in range(0, len(mine), config.batch_size))
        total = sum(_errors(model, windows.gather(batch), runtime) for batch in batches)
        error = runtime.sum((total,))[0] / (runtime.parts * len(windows))
        return error if math.isfinite(error) else math.inf

    return validate


@torch.no_grad()
def _errors(model: Operator, window: Window, runtime: Runtime) -> float:
    """Sum over some samples of their errors."""
    window = runtime.move(window)
    inputs, targets, params = window.inputs, window.targets, window.params
    if model.signature.evolves:
        pred = rollout(model, inputs, targets.shape[1], params, window.grid)
    else:
        pred = model(inputs, params, window.grid)[:, None]
    # In float64: squares of fields of 1e-25 or 1e20 are nothing or infinite in float32.
    sums = (to_float64(v).square().flatten(1, -2).sum(1) for v in (pred - targets, targets))
    error, size = (summed(part, window.grid).sqrt() for part in sums)
    ratio = error / size.clamp_min(torch.finfo(size.dtype).tiny)
    # A field that is zero throughout has no relative error; its absolute one stands in.
    return float(to_float64(torch.where(size > 0, ratio, error).mean(-1)).sum())
