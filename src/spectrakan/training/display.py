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
    """Shows nothing; the displays below show sentences, and how much of long work is done."""

    every_epoch = False
    """Whether all epochs are shown as sentences, or the best ones alone."""
    validation = ""
    """The last validation error, as text."""

    def say(self, text: str) -> None:
        """Show a sentence."""

    def draw(self, title: str, done: int, total: int, text: str = "") -> None:
        """Show how much of the work of that title is done, with a text beside it."""

    def progress(self, title: str) -> Counter:
        """A callback for long work of that title."""
        return lambda done, total: self.draw(title, done, total)

    def listener(self, event: Event) -> None:
        """Show an event of training."""
        match event:
            case StepTaken():
                speed = event.samples / max(event.seconds, 1e-9)
                numbers = f"rate {event.rate:.1e}  {speed:.0f} samples/s"
                text = f"epoch {event.epoch + 1}  loss {event.loss:.4f}{self.validation}  {numbers}"
                self.draw("training", event.step, event.total_steps, text)
            case EpochEnded():
                if event.validation is not None:
                    self.validation = f"  validation {event.validation:.4f}"
                if event.is_best or self.every_epoch:
                    numbers = f"loss {event.loss:.4f}{self.validation}{'  best' if event.is_best else ''}"
                    left = event.seconds * (event.epochs - event.epoch - 1)
                    self.say(f"epoch {event.epoch + 1}/{event.epochs}  {numbers}  {left:.0f} s left")
            case Recovered():
                self.say(
                    f"step {event.step}: {event.reason}; the step was not taken. Back to the best weights, "
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
        yield NotebookBar()
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
        with Progress(*columns, console=Console(stderr=True)) as bars:
            yield MovingBars(bars)


@contextmanager
def progress_bar(title: str) -> Iterator[Counter]:
    """A callback for long work of a command, shown on stderr so that output can be piped."""
    with display(True) as shown:
        yield shown.progress(title)


class MovingBars(Display):
    """A bar for each title, which appears with the first piece of work and vanishes with the last."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}

    def say(self, text: str) -> None:
        """Print a sentence above the bars."""
        self.bars.console.print(text, highlight=False, soft_wrap=True)

    def draw(self, title: str, done: int, total: int, text: str = "") -> None:
        """Move a bar."""
        if title not in self.tasks:
            self.tasks[title] = self.bars.add_task(title, total=total, text=text)
        self.bars.update(self.tasks[title], completed=done, total=total, text=text, visible=done < total)


class NotebookBar(Display):
    """A bar with a line of text below the cell, drawn again in place; it needs no widgets."""

    def __init__(self) -> None:
        self.output: Any = import_module("IPython.display")
        self.handle: Any = None
        self.drawn = 0.0

    def say(self, text: str) -> None:
        """Print a sentence above the bar."""
        print(text)  # noqa: T201 - showing progress is what this file is for

    def draw(self, title: str, done: int, total: int, text: str = "") -> None:
        """Draw the bar, unless it was drawn a moment ago."""
        now = time.monotonic()
        if done < total and now - self.drawn < REDRAW_SECONDS:
            return
        self.drawn = now
        bar = f"<progress value='{done}' max='{max(total, 1)}' style='width: 16em'></progress>"
        shown = self.output.HTML(f"{bar} {done}/{total} {html.escape(text or title)}")
        if self.handle is None:
            self.handle = self.output.display(shown, display_id=True)
        else:
            self.handle.update(shown)


class PlainLines(Display):
    """A line for each epoch and recovery, and one for each tenth of other long work."""

    every_epoch = True

    def __init__(self) -> None:
        self.tenths: dict[str, int] = {}

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - showing progress is what this file is for

    def draw(self, title: str, done: int, total: int, text: str = "") -> None:
        """Print a line for each tenth; that of training is shown by its epochs."""
        tenth = 10 * done // max(total, 1)
        if title != "training" and tenth > self.tenths.get(title, 0):
            self.tenths[title] = tenth
            self.say(f"{title}: {done} of {total}")
