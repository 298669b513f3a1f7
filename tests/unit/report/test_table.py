"""Tables: who wins, ties, what does not compete, and exports that can be read back."""

from __future__ import annotations

import math

import pytest

from spectrakan.errors import ShapeError
from spectrakan.report import Column, Row, Score, Table, to_markdown, to_rich


@pytest.fixture
def table() -> Table:
    rows = (
        Row("fno", (Score(0.5, paper=0.25), Score(0.1), "44 k")),
        Row("ours_2", (Score(0.123456, spread=0.0123), Score(0.9), "207 k")),
        Row("unet", (Score(0.2), Score(math.nan), "171 k")),
        Row("floor", (Score(0.01), Score(2.0), "0"), ranked=False),
        Row("lno", (Score(None), Score(0.9), "2 k")),
    )
    columns = (Column("rmse"), Column("r2", "larger"), Column("weights", "neither"))
    return Table("errors", columns, rows, notes=("A note.",))


def test_best_and_second_best_by_the_direction_of_the_column(table: Table):
    marks = [[table.mark(row, column) for column in range(3)] for row in range(5)]
    assert marks == [
        ["", "second", ""],
        ["best", "best", ""],
        ["second", "", ""],
        ["", "", ""],
        ["", "best", ""],
    ], "ties share a mark; unranked rows, NaN and None do not compete"


def test_markdown_marks_the_number_and_not_the_papers(table: Table):
    lines = to_markdown(table).splitlines()
    assert lines[0] == "| model | rmse | r2 | weights |"
    assert lines[2] == "| fno | 0.5 (0.25) | *0.1* | 44 k |"
    assert lines[3] == "| ours_2 | **0.1235 ± 0.01** | **0.9** | 207 k |"
    assert lines[4] == "| unet | *0.2* | – | 171 k |"
    assert lines[-1] == "A note."


def test_a_terminal_shows_the_same_numbers(table: Table):
    numbers = ["0.5 (0.25)", "[bold]0.1235 ± 0.01[/bold]", "[underline]0.2[/underline]", "0.01", "–"]
    assert [row[1] for row in to_rich(table)] == ["rmse", *numbers]


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="row 'a' has 2 cells for 1 columns"):
        Table("t", (Column("x"),), (Row("a", ("1", "2")),))
