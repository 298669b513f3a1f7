"""The training loop: take steps, validate after epochs, tell what happened.

It prints nothing, writes nothing and catches nothing. Whoever runs it listens to its events:

    for event in train_epochs(session):
        show(event)
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from spectrakan.training.events import EpochEnded, Event, StepTaken
from spectrakan.training.recovery import Recovery
from spectrakan.training.session import Session
from spectrakan.training.step import StepResult, take_step


def train_epochs(session: Session) -> Iterator[Event]:
    """Train from where the session stands to its last epoch, or until it is asked to stop.

    After every event the session is in a state that can be saved, and from which a restored session does
    the same steps again, bit for bit.
    """
    recovery = Recovery(session)
    if session.good is None:
        recovery.remember()
    while session.loader.epoch < session.choices.training.epochs:
        epoch, begin = session.loader.epoch, time.perf_counter()
        last = begin
        for window in session.loader:
            session.model.train()
            result = take_step(session, window)
            if result.problem:
                yield recovery.go_back(result.problem)
                break
            now = time.perf_counter()
            yield _told(session, epoch, result, seconds=now - last)
            last = now
            if session.stopping:
                return
        else:
            yield end_epoch(session, epoch, begin)
            recovery.remember()


def end_epoch(session: Session, epoch: int, begin: float) -> EpochEnded:
    """Validate where it is due, and keep the weights if they are the best so far."""
    position, training = session.position, session.choices.training
    loss = position.epoch_loss / max(1, position.epoch_steps)
    position.epoch_loss, position.epoch_steps = 0.0, 0
    last = epoch + 1 == training.epochs
    score, is_best = None, False
    if last or (epoch + 1) % training.validate_epochs == 0:
        score = _validated(session)
        is_best = _keep_if_best(session, loss if score is None else score)
    return EpochEnded(
        epoch=epoch,
        step=position.step,
        epochs=training.epochs,
        loss=loss,
        validation=score,
        is_best=is_best,
        seconds=time.perf_counter() - begin,
    )


def _validated(session: Session) -> float | None:
    session.model.eval()
    with session.average.applied():
        return session.validate(session.model)


def _keep_if_best(session: Session, score: float) -> bool:
    """Smaller is better; a score that is not finite never is."""
    position = session.position
    if not math.isfinite(score) or (position.best is not None and score >= position.best):
        return False
    position.best, position.best_step = score, position.step
    session.best_weights = session.averaged_state()
    return True


def _told(session: Session, epoch: int, result: StepResult, seconds: float) -> StepTaken:
    return StepTaken(
        epoch=epoch,
        step=session.position.step,
        total_steps=session.total_steps,
        loss=result.loss,
        rate=result.rate,
        gradient_norm=result.gradient_norm,
        samples=result.samples,
        seconds=seconds,
        compute_seconds=result.compute_seconds,
    )
