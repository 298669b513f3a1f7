"""A table of scores, and how it is written: Markdown, and text for a terminal.

Numbers have a spread and the paper's value beside them; the best and the second best of a column are marked.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from rich.markup import escape

from spectrakan.errors import ShapeError

Mark = Literal["best", "second", ""]
Better = Literal["smaller", "larger", "neither"]


@dataclass(frozen=True)
class Score:
    """A number of a table; None where there is none."""

    value: float | None
    spread: float | None = None
    """Standard deviation over seeds."""
    paper: float | None = None
    """What the paper reports for the same."""

    @property
    def known(self) -> bool:
        """Whether it is a finite number."""
        return self.value is not None and math.isfinite(self.value)


@dataclass(frozen=True)
class Column:
    """The title of a column, and which of its numbers is best."""

    title: str
    better: Better = "smaller"


@dataclass(frozen=True)
class Row:
    """One row: a name, and a score or a text for each column; an unranked row gets no mark."""

    label: str
    cells: tuple[Score | str, ...]
    ranked: bool = True

    def value(self, column: int) -> float:
        """The number that is ranked; NaN where there is none."""
        cell = self.cells[column]
        return cell.value if self.ranked and isinstance(cell, Score) and cell.value is not None else math.nan


@dataclass(frozen=True)
class Table:
    """Rows of equal length below their columns, with notes underneath.

    >>> rows = (Row("fno", (Score(2.0),)), Row("ours", (Score(1.0),)))
    >>> Table("errors", (Column("rmse"),), rows).mark(1, 0)
    'best'
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    corner: str = "model"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ShapeError(
                    f"table '{self.title}': row '{row.label}' has {len(row.cells)} cells for "
                    f"{len(self.columns)} columns"
                )

    @property
    def head(self) -> list[str]:
        """The names of all columns, that of the rows first."""
        return [self.corner, *(column.title for column in self.columns)]

    def mark(self, row: int, column: int) -> Mark:
        """Whether a score is the best or the second best value of its column; equal values share a mark."""
        sign = {"smaller": 1.0, "larger": -1.0, "neither": math.nan}[self.columns[column].better]
        values = [sign * each.value(column) for each in self.rows]
        ranked = sorted({value for value in values if math.isfinite(value)})
        marks: dict[float, Mark] = dict(zip(ranked, ("best", "second"), strict=False))
        return marks.get(values[row], "")


def number(value: float | None) -> str:
    """A number in four digits, a whole number in all of its digits, a dash where there is none.

    >>> number(0.012345), number(123456.0), number(123456), number(None)
    ('0.01235', '1.235e+05', '123456', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if isinstance(value, int):
        return str(value)
    return f"{value:.4g}" if math.isfinite(value) else "∞"


def score_text(score: Score | str) -> str:
    """A score with its spread and the paper's value in brackets."""
    if isinstance(score, str):
        return score
    text = number(score.value)
    if score.spread is not None and score.known:
        text += f" ± {score.spread:.1g}"
    return text if score.paper is None else f"{text} ({number(score.paper)})"


Signs = dict[Mark, tuple[str, str]]
"""What stands before and after a number with a mark."""
STARS: Signs = {"best": ("**", "**"), "second": ("*", "*"), "": ("", "")}
RICH: Signs = {"best": ("[bold]", "[/bold]"), "second": ("[underline]", "[/underline]"), "": ("", "")}


def to_markdown(table: Table) -> str:
    """A table of Markdown: the best in bold, the second best in italics, the paper's values in brackets."""
    head, *rows = _texts(table, STARS, lambda text: text.replace("|", r"\|"))
    rule = ["---", *("---:" for _ in table.columns)]
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, rule, *rows)]
    return "".join(lines) + "".join(f"\n{note}\n" for note in table.notes)


def to_rich(table: Table) -> list[list[str]]:
    """Head and rows for a terminal, in rich's markup: the best in bold, the second best underlined."""
    return list(_texts(table, RICH, escape))


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
