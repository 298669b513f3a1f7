"""How training is shown: a live line on a terminal, plain lines elsewhere; both on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from spectrakan.training.events import EpochEnded, Event, Listener, Recovered, StepTaken


@contextmanager
def training_display() -> Iterator[Listener]:
    """A listener that shows epoch, loss, validation error, rate, samples per second and time left."""
    if not sys.stderr.isatty():
        yield PlainLines()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield LiveLine(bar)


class LiveLine:
    """One line that moves; epochs that were the best, and recoveries, stay above it."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.task = bar.add_task("training", total=None, told="")
        self.validation: float | None = None

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case StepTaken():
                error = "" if self.validation is None else f"  validation {self.validation:.4f}"
                told = f"loss {event.loss:.4f}{error}  rate {event.rate:.1e}  {_speed(event):.0f} samples/s"
                self.bar.update(
                    self.task,
                    description=f"epoch {event.epoch + 1}",
                    completed=event.step,
                    total=event.total_steps,
                    told=told,
                )
            case EpochEnded():
                self.validation = event.validation if event.validation is not None else self.validation
                if event.is_best:
                    self.bar.console.print(_epoch(event), highlight=False)
            case Recovered():
                self.bar.console.print(_recovery(event), highlight=False)


class PlainLines:
    """A line for each epoch and recovery, with the time left."""

    def __init__(self) -> None:
        self.begin = 0.0
        self.first: int | None = None
        self.last: StepTaken | None = None

    def __call__(self, event: Event) -> None:
        """Print an event, if it is one to be printed."""
        match event:
            case StepTaken():
                if self.first is None:
                    self.first, self.begin = event.step - 1, time.monotonic() - event.seconds
                self.last = event
            case EpochEnded():
                print(f"{_epoch(event)}{self._pace()}", file=sys.stderr, flush=True)
            case Recovered():
                print(_recovery(event), file=sys.stderr, flush=True)

    def _pace(self) -> str:
        if self.last is None or self.first is None:
            return ""
        per_step = (time.monotonic() - self.begin) / max(1, self.last.step - self.first)
        left = per_step * (self.last.total_steps - self.last.step)
        return (
            f"  rate {self.last.rate:.1e}  {self.last.samples / max(per_step, 1e-9):.0f} samples/s  {left:.0f} s left"
        )


def _epoch(event: EpochEnded) -> str:
    error = "" if event.validation is None else f"  validation {event.validation:.4f}"
    return f"epoch {event.epoch + 1}/{event.epochs}  loss {event.loss:.4f}{error}{'  best' if event.is_best else ''}"


def _recovery(event: Recovered) -> str:
    return (
        f"step {event.step}: {event.reason}; the step was not taken. Back to the last good state, "
        f"at {event.rate_factor:g} of the rate (recovery {event.attempt})"
    )


def _speed(event: StepTaken) -> float:
    return event.samples / max(event.seconds, 1e-9)
