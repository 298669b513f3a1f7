"""One step: loss, gradient, a look whether both are sane, and only then the optimizer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from spectrakan.fields import Window
from spectrakan.training.runtime import noise_source
from spectrakan.training.session import Session
from spectrakan.training.unroll import horizon_at

SETTLED = 10
"""Steps before a running mean of the loss says what is usual."""
MEMORY = 0.95


@dataclass(frozen=True)
class StepResult:
    """What a step found; with a `problem` it was not taken."""

    loss: float
    rate: float
    gradient_norm: float
    samples: int
    compute_seconds: float
    problem: str = ""


def take_step(session: Session, window: Window) -> StepResult:
    """Move the weights by one batch, unless loss or gradient say that they would be spoilt by it."""
    runtime, training = session.runtime, session.choices.training
    rate = session.rate
    for group in session.optimizer.param_groups:
        group["lr"] = rate
    samples = window.inputs.shape[0] * runtime.world_size
    window = _moved(window, session)
    begin = time.perf_counter()
    loss = _gradient(session, window)
    limit = training.clip_norm or math.inf
    norm = float(torch.nn.utils.clip_grad_norm_(session.parameters, limit))
    # One sum tells all processes the loss, and whether any of them was asked to stop or to save.
    wishes = (float(session.stop_requested()), float(runtime.writes and session.checkpoint_wanted()))
    loss, stop, save = runtime.sum((loss / runtime.world_size, *wishes))
    session.stopping, session.checkpoint_due = stop > 0, save > 0
    problem = _problem(session, loss, norm)
    if not problem:
        session.optimizer.step()
        session.constrain()
    compute = time.perf_counter() - begin
    if not problem:
        _advance(session, loss)
    return StepResult(loss, rate, norm, samples, compute, problem)


def _gradient(session: Session, window: Window) -> float:
    """Accumulate the gradient of the mean loss over the pieces of a batch; processes meet at the last one."""
    choices, position, runtime = session.choices, session.position, session.runtime
    horizon = horizon_at(position.step / session.total_steps, choices.training)
    noise = noise_source(choices.runtime.seed, position.step, runtime.rank)
    session.optimizer.zero_grad()
    total, count = 0.0, window.inputs.shape[0]
    pieces = list(_pieces(window, choices.training.accumulate))
    for index, piece in enumerate(pieces):
        objective, last = session.objective, index + 1 == len(pieces)
        apart = objective.no_sync() if isinstance(objective, DistributedDataParallel) and not last else nullcontext()
        with apart:
            with runtime.autocast():
                loss: Tensor = objective(piece, horizon, noise) * (piece.inputs.shape[0] / count)
            loss.backward()
        total += float(loss.detach())
    return total


def _problem(session: Session, loss: float, norm: float) -> str:
    """Why a step must not be taken; every process comes to the same answer."""
    position, training = session.position, session.choices.training
    if not math.isfinite(loss):
        return f"the loss is {loss}"
    if not math.isfinite(norm):
        return f"the gradient's norm is {norm}"
    if position.step >= SETTLED and loss > training.explosion * position.running_loss:
        return f"the loss rose to {loss:.3g}, its running mean is {position.running_loss:.3g}"
    return ""


def _advance(session: Session, loss: float) -> None:
    position = session.position
    position.step += 1
    session.average.update(position.step)
    # A running mean without bias towards its start: the weight of the past grows to MEMORY.
    past = min(MEMORY, (position.step - 1) / position.step)
    position.running_loss = past * position.running_loss + (1 - past) * loss
    position.epoch_loss += loss
    position.epoch_steps += 1


def _pieces(window: Window, count: int) -> Iterator[Window]:
    size = -(-window.inputs.shape[0] // count)
    for first in range(0, window.inputs.shape[0], size):
        part = slice(first, first + size)
        yield replace(
            window,
            inputs=window.inputs[part],
            targets=window.targets[part],
            params=None if window.params is None else window.params[part],
            observed=None if window.observed is None else window.observed[part],
            times=None if window.times is None else window.times[part],
        )


def _moved(window: Window, session: Session) -> Window:
    device, dtype = session.runtime.device, session.runtime.dtype

    def move(tensor: Tensor) -> Tensor:
        return tensor.to(device, dtype, non_blocking=True)

    return replace(
        window,
        inputs=move(window.inputs),
        targets=move(window.targets),
        params=None if window.params is None else move(window.params),
        observed=None if window.observed is None else window.observed.to(device, non_blocking=True),
    )
