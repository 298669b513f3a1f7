"""A table of scores: numbers with their spread and the paper's value beside them, the best and second best marked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

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
        """Whether it can be compared."""
        return self.value is not None and math.isfinite(self.value)


@dataclass(frozen=True)
class Column:
    """What stands below a title, and which of its numbers wins."""

    title: str
    better: Better = "smaller"


@dataclass(frozen=True)
class Row:
    """One line: a name, and a score or a text for each column; an unranked line competes with none."""

    label: str
    cells: tuple[Score | str, ...]
    ranked: bool = True


@dataclass(frozen=True)
class Table:
    """Rows of equal length below their columns, with remarks underneath.

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

    def mark(self, row: int, column: int) -> Mark:
        """Whether a score is the best or the second best value of its column; equal values share a mark."""
        better = self.columns[column].better
        cell = self.rows[row].cells[column]
        if better == "neither" or not self.rows[row].ranked or isinstance(cell, str) or not cell.known:
            return ""
        values = sorted({self._value(other, column) for other in range(len(self.rows))} - {math.inf})
        place = values.index(self._value(row, column))
        return "best" if place == 0 else "second" if place == 1 else ""

    def _value(self, row: int, column: int) -> float:
        """Smaller is better; infinity does not compete."""
        cell = self.rows[row].cells[column]
        if isinstance(cell, str) or cell.value is None or not cell.known or not self.rows[row].ranked:
            return math.inf
        return cell.value if self.columns[column].better == "smaller" else -cell.value


def number(value: float | None) -> str:
    """A number in four digits, a dash where there is none.

    >>> number(0.012345), number(123456.0), number(None)
    ('0.01235', '1.235e+05', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.4g}" if math.isfinite(value) else "∞"


def score_text(score: Score | str, plus_minus: str = "±") -> str:
    """A score with its spread and the paper's value in brackets."""
    if isinstance(score, str):
        return score
    text = number(score.value)
    if score.spread is not None and score.known:
        text += f" {plus_minus} {score.spread:.1g}"
    return text if score.paper is None else f"{text} ({number(score.paper)})"
