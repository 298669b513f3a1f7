"""Tables and lines on the terminal."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spectrakan.report.table import number


def print_table(head: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> None:
    """Texts as they are, numbers in four digits; the first column to the left, all others to the right."""
    print_marked([head, *([escape(cell if isinstance(cell, str) else number(cell)) for cell in row] for row in rows)])


def print_marked(rows: Sequence[Sequence[str]]) -> None:
    """A head and rows of texts in rich's markup; a pipe has no width, so lines are not wrapped there."""
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if index else "left")
    for row in rows[1:]:
        table.add_row(*row)
    Console(highlight=False, width=None if sys.stdout.isatty() else 240).print(table)
