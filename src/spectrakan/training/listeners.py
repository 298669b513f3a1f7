"""What a run folder keeps of the training loop's events: log and checkpoints."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from spectrakan.checkpoint import save_best, save_checkpoint
from spectrakan.errors import RunError
from spectrakan.models.operator import describe_model
from spectrakan.runs import RunFolder, RunLog
from spectrakan.training.loop import EpochEnded, Event, Recovered, StepTaken
from spectrakan.training.session import Session


class LogWriter:
    """Writes every n-th step, every epoch and every recovery to the run's log."""

    def __init__(self, log: RunLog, every: int) -> None:
        self.log = log
        self.every = every
        self.since = time.perf_counter()

    def __call__(self, event: Event) -> None:
        """Log an event, if it is one to be logged."""
        match event:
            case StepTaken() if event.step % self.every == 0:
                self._write("step", event, loss=event.loss, rate=event.rate, gradient_norm=event.gradient_norm)
            case EpochEnded():
                self._write("epoch", event, loss=event.loss, validation=event.validation, is_best=event.is_best)
            case Recovered():
                self._write("recovery", event, reason=event.reason, rate_factor=event.rate_factor)
            case _:
                pass

    def _write(self, name: str, event: Event, **values: Any) -> None:
        now = time.perf_counter()
        # Time since the line before, so that the sum over lines is the time of the run, resumed or not.
        self.log.write(name, epoch=event.epoch, step=event.step, **values, seconds=round(now - self.since, 4))
        self.since = now


class CheckpointWriter:
    """Saves `last` when it is due, and `best` when an epoch was the best; all processes take part."""

    def __init__(self, session: Session, folder: RunFolder | None, log: RunLog | None = None) -> None:
        self.session = session
        self.folder = folder
        self.log = log
        self.since = time.monotonic()
        session.checkpoint_wanted = self.wanted

    def __call__(self, event: Event) -> None:
        """Save what an event calls for."""
        session = self.session
        if isinstance(event, EpochEnded) and event.is_best and self.folder is not None and session.runtime.writes:
            self.folder.require_present()
            save_best(self.folder.best, describe_model(session.model), session.best_weights, session.run_id)
        if isinstance(event, StepTaken) and (session.checkpoint_due or session.stopping):
            self.save_last()

    def save_last(self) -> None:
        """Write the whole state, so that a run can go on from here."""
        state = self.session.capture()
        if self.folder is not None and self.session.runtime.writes:
            self.folder.require_present()
            lines = None if self.log is None else self.log.mark()
            bound = replace(state, run_id=self.session.run_id, log_lines=lines)
            try:
                save_checkpoint(self.folder.last, bound, keep=self.session.config.runtime.keep_checkpoints)
            except RunError:
                self.folder.require_present()
                raise
        self.since = time.monotonic()

    def wanted(self) -> bool:
        """Whether the step that is under way should be followed by a checkpoint."""
        config = self.session.config.runtime
        if self.folder is None:
            return False
        if config.checkpoint_steps:
            return (self.session.position.step + 1) % config.checkpoint_steps == 0
        return time.monotonic() - self.since >= config.checkpoint_seconds
