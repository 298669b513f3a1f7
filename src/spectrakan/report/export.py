"""Tables as Markdown, LaTeX, CSV and text for a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import rich.table
from rich.markup import escape

from spectrakan.errors import ConfigError, nearest
from spectrakan.report.table import Mark, Score, Table, score_text
from spectrakan.storage import write_text_atomically


def to_markdown(table: Table) -> str:
    """A table of Markdown: the best in bold, the second best in italics, the paper's values in brackets."""
    head = [table.corner, *(column.title for column in table.columns)]
    lines = [_piped(head), _piped(["---", *("---:" for _ in table.columns)])]
    for place, row in enumerate(table.rows):
        cells = [_starred(score_text(cell), table.mark(place, index)) for index, cell in enumerate(row.cells)]
        lines.append(_piped([row.label, *cells]))
    notes = "".join(f"\n{note}\n" for note in table.notes)
    return "\n".join(lines) + "\n" + notes


def to_latex(table: Table) -> str:
    """A `tabular` of LaTeX (package booktabs): the best in bold, the second best underlined."""
    head = [table.corner, *(column.title for column in table.columns)]
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(_tex(text) for text in head) + r" \\",
        r"\midrule",
    ]
    for place, row in enumerate(table.rows):
        cells = [_tex_marked(_tex(score_text(cell)), table.mark(place, i)) for i, cell in enumerate(row.cells)]
        lines.append(" & ".join([_tex(row.label), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def to_csv(table: Table) -> str:
    """Comma-separated values at full precision; spread, paper's value and mark have columns of their own."""
    spreads, papers = (_columns_with(table, name) for name in ("spread", "paper"))
    head = [table.corner]
    for index, column in enumerate(table.columns):
        head.append(column.title)
        head += [f"{column.title} spread"] * (index in spreads) + [f"{column.title} paper"] * (index in papers)
        head += [f"{column.title} mark"] * (column.better != "neither")
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    for place, row in enumerate(table.rows):
        line: list[str | float | None] = [row.label]
        for index, cell in enumerate(row.cells):
            value, spread, paper = (
                (cell, None, None) if isinstance(cell, str) else (cell.value, cell.spread, cell.paper)
            )
            line.append(value)
            line += [spread] * (index in spreads) + [paper] * (index in papers)
            line += [table.mark(place, index)] * (table.columns[index].better != "neither")
        writer.writerow(line)
    return buffer.getvalue()


def to_rich(table: Table) -> rich.table.Table:
    """For a terminal: the best in bold, the second best underlined."""
    shown = rich.table.Table(table.corner, box=None, pad_edge=False)
    for column in table.columns:
        shown.add_column(column.title, justify="right")
    styles: dict[Mark, str] = {"best": "bold", "second": "underline"}
    for place, row in enumerate(table.rows):
        cells = []
        for index, cell in enumerate(row.cells):
            text, style = escape(score_text(cell)), styles.get(table.mark(place, index))
            cells.append(f"[{style}]{text}[/{style}]" if style else text)
        shown.add_row(escape(row.label), *cells)
    return shown


EXPORTS: dict[str, Callable[[Table], str]] = {".md": to_markdown, ".tex": to_latex, ".csv": to_csv}


def export_table(table: Table, path: Path) -> None:
    """Write a table in the format that the ending of the file asks for."""
    if path.suffix not in EXPORTS:
        raise ConfigError(
            f"cannot export to '{path}': unknown ending '{path.suffix}'{nearest(path.suffix, EXPORTS)}; "
            f"known: {', '.join(EXPORTS)}"
        )
    write_text_atomically(path, EXPORTS[path.suffix](table))


def _columns_with(table: Table, fact: str) -> set[int]:
    return {
        index
        for row in table.rows
        for index, cell in enumerate(row.cells)
        if isinstance(cell, Score) and getattr(cell, fact) is not None
    }


def _piped(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _starred(text: str, mark: Mark) -> str:
    """Only the number is marked, not the paper's beside it."""
    stars = {"best": "**", "second": "*"}.get(mark, "")
    first, bracket, rest = text.partition(" (")
    return f"{stars}{first}{stars}{bracket}{rest}"


def _tex_marked(text: str, mark: Mark) -> str:
    command = {"best": r"\textbf", "second": r"\underline"}.get(mark)
    first, bracket, rest = text.partition(" (")
    return f"{command}{{{first}}}{bracket}{rest}" if command else text


def _tex(text: str) -> str:
    signs = {"\\": r"\textbackslash{}", "±": r"$\pm$", "–": "--", "∞": r"$\infty$", "→": r"$\to$", "²": r"$^2$"}
    signs |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    return "".join(signs.get(letter, letter) for letter in text)
