"""Tables as Markdown, LaTeX, CSV and text for a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rich.table
from rich.markup import escape

from spectrakan.errors import ConfigError, nearest
from spectrakan.report.table import Mark, Table, score_text
from spectrakan.storage import write_text_atomically

Signs = dict[Mark, tuple[str, str]]
"""What stands before and after a number with a mark."""
STARS: Signs = {"best": ("**", "**"), "second": ("*", "*"), "": ("", "")}
TEX: Signs = {"best": (r"\textbf{", "}"), "second": (r"\underline{", "}"), "": ("", "")}
RICH: Signs = {"best": ("[bold]", "[/bold]"), "second": ("[underline]", "[/underline]"), "": ("", "")}


def to_markdown(table: Table) -> str:
    """A table of Markdown: the best in bold, the second best in italics, the paper's values in brackets."""
    head, *rows = _texts(table, STARS, lambda text: text.replace("|", r"\|"))
    rule = ["---", *("---:" for _ in table.columns)]
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows)]
    return "".join(lines) + "".join(f"\n{note}\n" for note in table.notes)


def to_latex(table: Table) -> str:
    """A `tabular` of LaTeX (package booktabs): the best in bold, the second best underlined."""
    head, *rows = (" & ".join(cells) + r" \\" for cells in _texts(table, TEX, _tex))
    begin = rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}"
    lines = [begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """Comma-separated values at full precision; spread, paper's value and mark have columns of their own."""
    columns: list[tuple[str, list[Any]]] = [(table.corner, [row.label for row in table.rows])]
    for index, column in enumerate(table.columns):
        cells = [row.cells[index] for row in table.rows]
        columns.append((column.title, [cell if isinstance(cell, str) else cell.value for cell in cells]))
        for name in ("spread", "paper"):
            found = [getattr(cell, name, None) for cell in cells]
            if any(value is not None for value in found):
                columns.append((f"{column.title} {name}", found))
        if column.better != "neither":
            columns.append((f"{column.title} mark", [table.mark(row, index) for row in range(len(cells))]))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(title for title, _ in columns)
    writer.writerows(zip(*(values for _, values in columns), strict=True))
    return buffer.getvalue()


def to_rich(table: Table) -> rich.table.Table:
    """For a terminal: the best in bold, the second best underlined."""
    (corner, *titles), *rows = _texts(table, RICH, escape)
    shown = rich.table.Table(corner, box=None, pad_edge=False)
    for title in titles:
        shown.add_column(title, justify="right")
    for cells in rows:
        shown.add_row(*cells)
    return shown


EXPORTS: dict[str, Callable[[Table], str]] = {".md": to_markdown, ".tex": to_latex, ".csv": to_csv}


def export_table(table: Table, path: Path) -> None:
    """Write a table in the format of the file's ending."""
    if path.suffix not in EXPORTS:
        raise ConfigError(
            f"cannot export to '{path}': unknown ending '{path.suffix}'{nearest(path.suffix, EXPORTS)}; "
            f"known: {', '.join(EXPORTS)}"
        )
    write_text_atomically(path, EXPORTS[path.suffix](table))


def _texts(table: Table, signs: Signs, clean: Callable[[str], str]) -> Iterator[list[str]]:
    """The texts of the head and of all rows; of a score only the number is marked, not the paper's beside it."""
    yield [clean(title) for title in table.head]
    for number, row in enumerate(table.rows):
        cells = [clean(row.label)]
        for index, cell in enumerate(row.cells):
            value, bracket, paper = clean(score_text(cell)).partition(" (")
            before, after = signs[table.mark(number, index)]
            cells.append(f"{before}{value}{after}{bracket}{paper}")
        yield cells


def _tex(text: str) -> str:
    signs = {"\\": r"\textbackslash{}", "±": r"$\pm$", "–": "--", "∞": r"$\infty$", "→": r"$\to$", "²": r"$^2$"}
    signs |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    return "".join(signs.get(letter, letter) for letter in text)
