"""The training loop: take steps, validate after epochs, give an event for each.

It prints nothing, writes nothing and catches nothing; display, log and checkpoints listen to its events:

    for event in train_epochs(session):
        show(event)
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.fields import Window
from spectrakan.training.objective import horizon_at
from spectrakan.training.session import Session, rate_factor

SETTLED = 10
"""Steps before the running mean of the loss is compared with."""
MEMORY = 0.95
"""Largest weight of the past in that mean."""


@dataclass(frozen=True)
class StepTaken:
    """One step of the optimizer."""

    epoch: int
    step: int
    total_steps: int
    loss: float
    rate: float
    gradient_norm: float
    samples: int
    """Windows in the step, over all processes."""
    seconds: float
    compute_seconds: float
    """Of these: forward, backward and optimizer."""


@dataclass(frozen=True)
class EpochEnded:
    """All windows were seen once more; `validation` is None where none was due."""

    epoch: int
    step: int
    epochs: int
    loss: float
    validation: float | None
    is_best: bool
    seconds: float


@dataclass(frozen=True)
class Recovered:
    """A step was not taken; training goes on from its best weights at a lower rate."""

    epoch: int
    step: int
    reason: str
    attempt: int
    rate_factor: float


Event = StepTaken | EpochEnded | Recovered
Listener = Callable[[Event], None]


def train_epochs(session: Session) -> Iterator[Event]:
    """Train from where the session stands to its last epoch, or until a stop is requested.

    After every event the session is in a state that can be saved, and from which a restored session does
    the same steps again, bit for bit.
    """
    while session.loader.epoch < session.config.training.epochs:
        epoch = session.loader.epoch
        begin = since = time.perf_counter()
        for window in session.loader:
            event = take_step(session, window, epoch, since)
            since = time.perf_counter()
            yield event
            if isinstance(event, Recovered):
                break
            if session.stopping:
                return
        else:
            yield end_epoch(session, epoch, begin)


def take_step(session: Session, window: Window, epoch: int, since: float) -> StepTaken | Recovered:
    """Move the weights by one batch; where loss or gradient are not sane, go back to the best weights instead."""
    runtime, position, training = session.runtime, session.position, session.config.training
    shape = rate_factor(position.step, session.total_steps, warmup=training.warmup)
    rate = training.learning_rate * shape * position.rate_factor
    if not session.model.training:  # going through all modules has a price
        session.model.train()
    for group in session.optimizer.param_groups:
        group["lr"] = rate
    window = runtime.move(window)
    begin = time.perf_counter()
    loss = _gradient(session, window)
    norm = float(torch.nn.utils.clip_grad_norm_(session.parameters, training.clip_norm or math.inf))
    # One sum gives all processes the loss, and whether a stop or a checkpoint is requested in any of them.
    requests = (float(session.stop()), float(runtime.writes and session.checkpoint_wanted()))
    loss, stop, save = runtime.sum((loss / runtime.world_size, *requests))
    session.stopping, session.checkpoint_due = stop > 0, save > 0
    if reason := _divergence(session, loss, norm):
        failed_at, failed_epoch = position.step, session.loader.epoch
        session.go_back(reason)
        position = session.position
        return Recovered(failed_epoch, failed_at, reason, position.recoveries, position.rate_factor)
    session.optimizer.step()
    session.constrain()
    compute_seconds = time.perf_counter() - begin
    position.step += 1
    session.average.update(position.step)
    # A running mean without bias towards its start: the weight of the past grows to MEMORY.
    past = min(MEMORY, (position.step - 1) / position.step)
    position.running_loss = past * position.running_loss + (1 - past) * loss
    position.epoch_loss += loss
    position.epoch_steps += 1
    return StepTaken(
        epoch=epoch,
        step=position.step,
        total_steps=session.total_steps,
        loss=loss,
        rate=rate,
        gradient_norm=norm,
        samples=window.inputs.shape[0] * runtime.data_size,
        seconds=time.perf_counter() - since,
        compute_seconds=compute_seconds,
    )


def _gradient(session: Session, window: Window) -> float:
    """Leave the gradient of the mean loss of a batch in the weights, the mean over processes; gives the loss."""
    config, position, runtime = session.config, session.position, session.runtime
    horizon = horizon_at(position.step / session.total_steps, config.training)
    # From the numbers of step and process alone, so nothing has to be saved.
    seed = ((config.runtime.seed * 1_000_003 + runtime.rank) * 1_000_003 + position.step) % 2**63
    noise = torch.Generator().manual_seed(seed)
    session.optimizer.zero_grad()
    with runtime.autocast():
        loss: Tensor = session.objective(window, horizon, noise)
    loss.backward()
    return float(loss.detach())


def _divergence(session: Session, loss: float, norm: float) -> str:
    """Why a step must not be taken; every process comes to the same result."""
    position, training = session.position, session.config.training
    if not math.isfinite(loss):
        return f"the loss is {loss}"
    if not math.isfinite(norm):
        return f"the gradient's norm is {norm}"
    if position.step >= SETTLED and loss > training.divergence_factor * position.running_loss:
        return f"the loss rose to {loss:.3g}, its running mean is {position.running_loss:.3g}"
    return ""


def end_epoch(session: Session, epoch: int, begin: float) -> EpochEnded:
    """Validate where it is due, and keep the weights if they are the best so far; smaller is better."""
    position, training = session.position, session.config.training
    loss = position.epoch_loss / max(1, position.epoch_steps)
    position.epoch_loss, position.epoch_steps = 0.0, 0
    error, is_best = None, False
    if epoch + 1 == training.epochs or (epoch + 1) % training.validate_epochs == 0:
        session.model.eval()
        with session.average.applied():
            error = session.validate(session.model)
        score = loss if error is None else error
        is_best = math.isfinite(score) and (position.best is None or score < position.best)
        if is_best:
            position.best, position.best_step = score, position.step
            session.best_weights = session.averaged_state()
    return EpochEnded(
        epoch=epoch,
        step=position.step,
        epochs=training.epochs,
        loss=loss,
        validation=error,
        is_best=is_best,
        seconds=time.perf_counter() - begin,
    )
