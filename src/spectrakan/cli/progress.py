"""How long work is shown: a bar on a terminal, a line each tenth elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress_bar(title: str, *, in_bytes: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A callback (done, total) that draws a bar or prints lines, on stderr so that output can be piped."""
    if not sys.stderr.isatty():
        yield _Lines(title, in_bytes)
        return
    amount = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show


class _Lines:
    """Plain lines, one for each tenth of the work."""

    def __init__(self, title: str, in_bytes: bool) -> None:
        self.title = title
        self.in_bytes = in_bytes
        self.tenth = 0

    def __call__(self, done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if tenth > self.tenth:
            self.tenth = tenth
            print(f"{self.title}: {self._amount(done)} of {self._amount(total)}", file=sys.stderr, flush=True)

    def _amount(self, count: int) -> str:
        return f"{count / 1e6:.1f} MB" if self.in_bytes else str(count)
