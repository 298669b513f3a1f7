"""How a run is shown: a moving line on terminals, a bar in notebooks, plain lines on stderr elsewhere."""

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from spectrakan.training.loop import EpochEnded, Event, Recovered, StepTaken

Counter = Callable[[int, int], None]
"""Takes how much of long work is done, and how much there is."""
REDRAW_SECONDS = 0.2
"""Shortest time between two drawings of a bar in a notebook."""


Draw = Callable[[str, int, int, str], None]
"""Takes the title of long work, how much of it is done, how much there is, and a text to stand beside it."""


@dataclass
class Display:
    """Shows sentences, and how much of long work is done; nothing by default."""

    say: Callable[[str], None] = lambda text: None
    draw: Draw = lambda title, done, total, text: None
    every_epoch: bool = False
    """Whether all epochs are shown as sentences, or the best ones alone."""
    validation: str = ""
    """The last validation error, as text."""

    def progress(self, title: str) -> Counter:
        """A callback for long work of that title."""
        return lambda done, total: self.draw(title, done, total, "")

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
        yield Display(print, _notebook_bar())
    elif not terminal:
        yield Display(_say_plainly, _tenths(), every_epoch=True)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            # On a narrow screen the text is cut, not the bar, the count and the time left.
            TextColumn("{task.fields[text]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        )
        with Progress(*columns, console=Console(stderr=True), expand=True) as bars:
            say = partial(bars.console.print, highlight=False, markup=False, soft_wrap=True)
            yield Display(say, _moving_bars(bars))


@contextmanager
def progress_bar(title: str) -> Iterator[Counter]:
    """A callback for long work of a command, shown on stderr so that output can be piped."""
    with display(True) as shown:
        yield shown.progress(title)


def _moving_bars(bars: Progress) -> Draw:
    """A bar for each title, which appears with the first piece of work and vanishes with the last."""
    tasks: dict[str, TaskID] = {}

    def draw(title: str, done: int, total: int, text: str) -> None:
        if title not in tasks:
            tasks[title] = bars.add_task(title, total=total, text=text)
        bars.update(tasks[title], completed=done, total=total, text=text, visible=done < total)

    return draw


def _notebook_bar() -> Draw:
    """A bar with a line of text below the cell, drawn again in place; it needs no widgets."""
    output: Any = import_module("IPython.display")
    handle: Any = None
    drawn = 0.0

    def draw(title: str, done: int, total: int, text: str) -> None:
        nonlocal handle, drawn
        if done < total and time.monotonic() - drawn < REDRAW_SECONDS:
            return
        drawn = time.monotonic()
        bar = f"<progress value='{done}' max='{max(total, 1)}' style='width: 16em'></progress>"
        shown = output.HTML(f"{bar} {done}/{total} {html.escape(text or title)}")
        if handle is None:
            handle = output.display(shown, display_id=True)
        else:
            handle.update(shown)

    return draw


def _say_plainly(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - showing progress is what this file is for


def _tenths() -> Draw:
    """A line for each tenth of long work; that of training is shown by its epochs."""
    tenths: dict[str, int] = {}

    def draw(title: str, done: int, total: int, text: str) -> None:
        tenth = 10 * done // max(total, 1)
        if title != "training" and tenth > tenths.get(title, 0):
            tenths[title] = tenth
            _say_plainly(f"{title}: {done} of {total}")

    return draw
