"""Tables and lines on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def console() -> Console:
    """Stdout; a pipe has no width, so lines are not wrapped there."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 240)


def number(value: float | None) -> str:
    """A number in four digits, a whole number in all of its digits, a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def print_table(head: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> None:
    """Texts as they are, numbers in four digits; the first column to the left, all others to the right."""
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(head):
        table.add_column(name, justify="right" if index else "left")
    for row in rows:
        table.add_row(*(escape(cell if isinstance(cell, str) else number(cell)) for cell in row))
    console().print(table)
