"""How a run is shown: a moving line on terminals, a bar in notebooks, plain lines on stderr elsewhere."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from spectrakan.training.loop import EpochEnded, Event, Recovered, StepTaken

Counter = Callable[[int, int], None]
"""Takes how much of long work is done, and how much there is."""
REDRAW_SECONDS = 0.2
"""Shortest time between two drawings of a bar in a notebook."""


class Display:
    """Shows nothing; the displays below show sentences, counters of long work and events of training."""

    validation = ""
    """The last validation error, as text."""

    def say(self, text: str) -> None:
        """Show a sentence."""

    def progress(self, title: str) -> Counter:
        """A callback for long work of that title."""
        return lambda done, total: None

    def show_step(self, event: StepTaken) -> None:
        """Show a step of training."""

    def show_epoch(self, event: EpochEnded, text: str) -> None:
        """Show the end of an epoch, which `text` describes."""

    def listener(self, event: Event) -> None:
        """Show an event of training."""
        match event:
            case StepTaken():
                self.show_step(event)
            case EpochEnded():
                error = "" if event.validation is None else f"  validation {event.validation:.4f}"
                self.validation = error or self.validation
                best = "  best" if event.is_best else ""
                self.show_epoch(event, f"epoch {event.epoch + 1}/{event.epochs}  loss {event.loss:.4f}{error}{best}")
            case Recovered():
                self.say(
                    f"step {event.step}: {event.reason}; the step was not taken. Back to the last good state, "
                    f"at {event.rate_factor:g} of the rate (recovery {event.attempt})"
                )


@contextmanager
def display(shown: bool | None = None) -> Iterator[Display]:
    """The display for this process: none, a moving line, or plain lines; None shows it where a person looks."""
    shell, terminal = sys.modules.get("IPython"), sys.stderr.isatty()
    notebook = shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
    if shown is False or (shown is None and not (notebook or terminal)):
        yield Display()
    elif notebook:
        yield NotebookLine()
    elif not terminal:
        yield PlainLines()
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[text]}"),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            yield LiveLine(bar)


@contextmanager
def progress_bar(title: str) -> Iterator[Counter]:
    """A callback for long work of a command, shown on stderr so that output can be piped."""
    with display(True) as shown:
        yield shown.progress(title)


class LiveLine(Display):
    """Bars that move; best epochs and recoveries stay above them."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.line: TaskID | None = None

    def say(self, text: str) -> None:
        """Print a sentence above the bars."""
        self.bar.console.print(text, highlight=False, soft_wrap=True)

    def progress(self, title: str) -> Counter:
        """A bar that appears with the first piece of work and vanishes with the last."""
        made: list[TaskID] = []

        def show(done: int, total: int) -> None:
            if not made:
                made.append(self.bar.add_task(title, total=total, text=""))
            self.bar.update(made[0], completed=done, total=total, visible=done < total)

        return show

    def show_step(self, event: StepTaken) -> None:
        """Move the training bar."""
        if self.line is None:
            self.line = self.bar.add_task("training", total=event.total_steps, text="")
        speed = event.samples / max(event.seconds, 1e-9)
        self.bar.update(
            self.line,
            description=f"epoch {event.epoch + 1}",
            completed=event.step,
            total=event.total_steps,
            text=f"loss {event.loss:.4f}{self.validation}  rate {event.rate:.1e}  {speed:.0f} samples/s",
        )

    def show_epoch(self, event: EpochEnded, text: str) -> None:
        """Print the best epochs above the bar."""
        if event.is_best:
            self.say(text)


class NotebookLine(Display):
    """A bar with a line of text below the cell, drawn again in place; it needs no widgets."""

    def __init__(self) -> None:
        self.output: Any = import_module("IPython.display")
        self.handle: Any = None
        self.drawn = 0.0

    def say(self, text: str) -> None:
        """Print a sentence above the bar."""
        print(text)  # noqa: T201 - showing progress is what this file is for

    def progress(self, title: str) -> Counter:
        """Draw the bar for long work of that title."""
        return lambda done, total: self._draw(done, total, title)

    def show_step(self, event: StepTaken) -> None:
        """Draw the bar of training."""
        text = f"epoch {event.epoch + 1}  loss {event.loss:.4f}{self.validation}  rate {event.rate:.1e}"
        self._draw(event.step, event.total_steps, text)

    def _draw(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if done < total and now - self.drawn < REDRAW_SECONDS:
            return
        self.drawn = now
        bar = f"<progress value='{done}' max='{max(total, 1)}' style='width: 16em'></progress>"
        shown = self.output.HTML(f"{bar} {done}/{total} {html.escape(text)}")
        if self.handle is None:
            self.handle = self.output.display(shown, display_id=True)
        else:
            self.handle.update(shown)


class PlainLines(Display):
    """A line for each epoch and recovery with the time left, and one for each tenth of long work."""

    def __init__(self) -> None:
        self.begin = 0.0
        self.first: int | None = None
        self.pace = ""

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - showing progress is what this file is for

    def progress(self, title: str) -> Counter:
        """Print a line for each tenth."""
        shown = 0

        def show(done: int, total: int) -> None:
            nonlocal shown
            tenth = 10 * done // max(total, 1)
            if tenth > shown:
                shown = tenth
                self.say(f"{title}: {done} of {total}")

        return show

    def show_step(self, event: StepTaken) -> None:
        """Take the mean time of a step since the first."""
        if self.first is None:
            self.first, self.begin = event.step - 1, time.monotonic() - event.seconds
        seconds = (time.monotonic() - self.begin) / max(1, event.step - self.first)
        speed, left = event.samples / max(seconds, 1e-9), seconds * (event.total_steps - event.step)
        self.pace = f"  rate {event.rate:.1e}  {speed:.0f} samples/s  {left:.0f} s left"

    def show_epoch(self, event: EpochEnded, text: str) -> None:
        """Print the epoch with the time left."""
        self.say(text + self.pace)
