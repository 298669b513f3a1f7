"""Tables on a page keep numbers, marks and remarks; provenance tells what differs."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.report import Column, DataTable, Paragraph, Row, Score, Table
from spectrakan.report.elements import Listing, as_html
from spectrakan.report.gallery import Plate, keep_plate, read_plates
from spectrakan.report.provenance import origin_of
from spectrakan.report.web_table import table_elements


def test_marks_become_kinds_and_unranked_lines_are_not_sorted():
    rows = (
        Row("ours", (Score(1.0, 0.1, 0.9),)),
        Row("fno", (Score(2.0),)),
        Row("lost", (Score(None),)),
        Row("floor", (Score(0.5),), ranked=False),
    )
    table, first, second = table_elements(Table("errors", (Column("rmse"),), rows, ("told", "- one\n- two")))
    assert isinstance(table, DataTable)
    assert table.head == ["model", "rmse"]
    assert [(row[1].text, row[1].value, row[1].kind) for row in table.rows] == [
        ("1 ± 0.1 (0.9)", 1.0, "best"),
        ("2", 2.0, "second"),
        ("–", None, "missing"),
        ("0.5", None, ""),
    ]
    assert (first, second) == (Paragraph("told"), Listing(("one", "two")))


def test_strong_words_and_code_are_the_only_markup():
    assert as_html(Paragraph("**a** `b` <i>")) == "<p><strong>a</strong> <code>b</code> &lt;i&gt;</p>"


def test_records_of_two_versions_show_both():
    def record(version: str, seed: int) -> dict:
        proof = {"versions": {"torch": version}, "commit": None, "system": "Linux", "data_sha256": "f" * 8}
        return {"seed": seed, "task": "darcy2d", "provenance": proof}

    origin = origin_of([record("2.12", 1), record("2.13", 0), record("2.13", 0)], "spectrakan reproduce main")
    facts = dict(origin.facts)
    assert facts["versions"] == "torch 2.12 and 2.13"
    assert facts["seeds"] == "0, 1"
    assert facts["commit"] == "not known"
    assert facts["training data, darcy2d"] == "f" * 8
    assert origin.codes == ("spectrakan reproduce main",)


def test_figures_are_kept_with_their_notes(tmp_path):
    plate = Plate("a", "Maps", 'a "caption": with signs', "words")
    keep_plate(tmp_path / "figures", plate, Figure(figsize=(1, 1)), ["svg"])
    assert sorted(path.suffix for path in (tmp_path / "figures").iterdir()) == [".png", ".svg", ".yaml"]
    ((read, picture),) = read_plates(tmp_path / "figures")
    assert read == plate
    assert (picture.caption, picture.alt) == (plate.caption, "words")
    assert read_plates(tmp_path / "nowhere") == []


def test_damaged_notes_are_told(tmp_path):
    keep_plate(tmp_path, Plate("a", "Maps", "caption", "words"), Figure(figsize=(1, 1)))
    (tmp_path / "a.yaml").write_text("name: a")
    with pytest.raises(DataFormatError, match="draw the figures again"):
        read_plates(tmp_path)
    (tmp_path / "a.yaml").write_text("[")
    with pytest.raises(ConfigError, match="not valid YAML"):
        read_plates(tmp_path)
