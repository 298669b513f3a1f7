"""A table of scores for a page: marks as colours, numbers that can be sorted, remarks below."""

from __future__ import annotations

from spectrakan.report.elements import DataTable, Element, Entry, Listing, Paragraph
from spectrakan.report.table import Score, Table, score_text


def table_elements(table: Table) -> list[Element]:
    """The table under its title, then its notes; lines that begin with a dash become a list."""
    head = [table.corner, *(column.title for column in table.columns)]
    rows = [
        [
            Entry(row.label),
            *(_entry(cell, table.mark(place, index), row.ranked) for index, cell in enumerate(row.cells)),
        ]
        for place, row in enumerate(table.rows)
    ]
    return [DataTable(head, rows, table.title), *text_elements("\n".join(table.notes))]


def text_elements(text: str) -> list[Element]:
    """Paragraphs and lists from lines, of which those of a list begin with a dash.

    >>> text_elements("told\\n- one\\n- two")
    [Paragraph(text='told', note=False), Listing(items=('one', 'two'))]
    """
    made: list[Element] = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if not line.startswith("- "):
            made.append(Paragraph(line))
        elif made and isinstance(made[-1], Listing):
            made[-1] = Listing((*made[-1].items, line[2:]))
        else:
            made.append(Listing((line[2:],)))
    return made


def _entry(cell: Score | str, mark: str, ranked: bool) -> Entry:
    """Lines that compete with none have nothing to be sorted by, and stay at the end."""
    if isinstance(cell, str):
        return Entry(cell)
    return Entry(score_text(cell), cell.value if ranked else None, mark if cell.value is not None else "missing")
