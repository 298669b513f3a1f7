"""What is minimised: an operator's own frames over a horizon, against the true ones.

one_step        the next frame, from a true history
autoregressive  `horizon` frames, each from the ones before, gradients through all of them
pushforward     the same, but only the last `gradient_steps` frames are compared and differentiated: the
                operator learns from its own errors without the cost of a long graph (Brandstetter et al. 2022)

A steady task is one step. Noise on the first history makes any mode robust to the operator's own errors. What
`training.lipschitz` penalises is added on top. How far frames are from true ones, at unit scale, is one number a
sample: with e = p - t, cell weights w_x summing to one, and ||v||² = sum_x w_x v_x²,

mse          mean over frames and fields of ||e||²
relative_l2  mean over frames and fields of ||e|| / max(||t||, FLOOR)

Every sample counts the same, so the mean over processes of means over their batches is the mean over all.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spectrakan.fields import Grid, GridPart, Window
from spectrakan.fields.grid_part import summed
from spectrakan.models.operator import Operator
from spectrakan.theory.control import control_penalty
from spectrakan.theory.parts import token_kan
from spectrakan.training.settings import LossName, TrainingSettings

Fields = Float[Tensor, "batch time *space field"]
FLOOR = 0.05
"""Smallest norm that an error is put in relation to: fields that begin at rest would else weigh without bound."""


def loss(name: LossName, pred: Fields, target: Fields, *, grid: Grid | None = None) -> Float[Tensor, " batch"]:
    """The loss of each sample.

    >>> truth = torch.ones(1, 1, 8, 1)
    >>> round(float(loss("relative_l2", 1.1 * truth, truth)), 4)
    0.1
    """
    space = pred.shape[2:-1]
    if grid is None or grid.is_uniform():
        cells = math.prod(grid.whole.shape if isinstance(grid, GridPart) else space)
        weights = torch.full((1, 1, *space, 1), 1.0 / cells, dtype=pred.dtype, device=pred.device)
    else:
        weights = grid.volumes()[None, None, ..., None].to(pred)
    error = summed(_square(pred - target, weights), grid)
    if name != "mse":
        # The root has no slope at zero; the tiny constant keeps the gradient of a perfect prediction finite.
        error = (error + 1e-24).sqrt() / summed(_square(target, weights), grid).clamp_min(FLOOR**2).sqrt()
    return error.mean((1, 2))


def _square(values: Tensor, weights: Tensor) -> Tensor:
    """Squared norms, `(batch, time, field)`."""
    return (values.square() * weights).flatten(2, -2).sum(2)


class Objective(nn.Module):
    """The mean loss of a batch, `Window -> ()`; one module, so that a distributed wrapper sees one forward."""

    def __init__(self, model: Operator, config: TrainingSettings) -> None:
        super().__init__()
        self.model = model
        self.config = config

    def forward(self, window: Window, horizon: int, noise: torch.Generator | None = None) -> Tensor:
        """Unroll `horizon` frames and compare; `noise` is where random perturbations come from."""
        model, config = self.model, self.config
        history, params = model.normalized(window.inputs, window.params)
        targets = model.output_units.normalize(window.targets[:, :horizon])
        if config.noise > 0 and noise is not None:
            drawn = torch.randn(history.shape, generator=noise, dtype=history.dtype)
            history = history + config.noise * drawn.to(history.device)
        free = max(0, horizon - config.gradient_steps) if config.mode == "pushforward" else 0
        pred = self._unroll(history, horizon, params, window.grid, free)
        samples = loss(config.loss, pred[:, free:], targets[:, free:], grid=window.grid)
        value: Tensor = samples.mean()
        if config.lipschitz.penalty > 0:
            # In here and not beside it: processes add up the gradients of what this module gives.
            value = value + control_penalty(token_kan(model), config.lipschitz)
        return value

    def _unroll(
        self, history: Tensor, horizon: int, params: Tensor | None, grid: Grid | None, free_steps: int
    ) -> Tensor:
        """Frames `(B, horizon, *space, C)` at unit scale, the first `free_steps` of them without gradient."""
        step: Callable[..., Tensor] = self.model.forward_normalized
        if self.config.checkpoint_activations:
            # Keep the input of a step instead of its inner activations, and compute these again on the way back.
            step = partial(checkpoint, step, use_reentrant=False)
        frames: list[Tensor] = []
        for index in range(horizon):
            with torch.set_grad_enabled(torch.is_grad_enabled() and index >= free_steps):
                frame = step(history, params, grid)
            frames.append(frame)
            if index + 1 < horizon:
                history = torch.cat([history[:, 1:], frame[:, None]], dim=1)
        return torch.stack(frames, dim=1)


def horizon_at(progress: float, config: TrainingSettings) -> int:
    """Frames to unroll at a share `progress` of the training.

    With `curriculum` c > 0 the horizon grows evenly from 1 to its full length over the first share c.
    """
    if config.curriculum == 0.0 or progress >= config.curriculum:
        return config.horizon
    return min(config.horizon, 1 + int(progress / config.curriculum * config.horizon))
