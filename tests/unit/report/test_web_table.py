"""Tables on a page keep numbers, marks and notes; provenance shows what differs."""

from __future__ import annotations

from page_outline import outline

from spectrakan.report import Column, Paragraph, Row, Score, Table
from spectrakan.report.page import as_html
from spectrakan.report.runs_page import origin_of


def test_marks_become_kinds_and_unranked_lines_are_not_sorted():
    rows = (
        Row("ours", (Score(1.0, 0.1, 0.9),)),
        Row("fno", (Score(2.0),)),
        Row("lost", (Score(None),)),
        Row("floor", (Score(0.5),), ranked=False),
    )
    text = as_html(Table("errors", (Column("rmse"),), rows, ("told", "- one\n- two")))
    found = outline(text)
    assert found.named("td") == [
        {"class": "best", "data-value": "1.0"},
        {"class": "second", "data-value": "2.0"},
        {"class": "missing"},
        {},
    ]
    assert '<td class="best" data-value="1.0">1 ± 0.1 (0.9)</td>' in text
    assert text.endswith("<p>told</p><ul><li>one</li><li>two</li></ul>")


def test_strong_words_and_code_are_the_only_markup():
    assert as_html(Paragraph("**a** `b` <i>")) == "<p><strong>a</strong> <code>b</code> &lt;i&gt;</p>"


def test_records_of_two_versions_show_both():
    def record(version: str, seed: int) -> dict:
        proof = {"versions": {"torch": version}, "commit": None, "system": "Linux", "data_sha256": "f" * 8}
        return {"seed": seed, "task": "darcy2d", "provenance": proof}

    origin = origin_of([record("2.12", 1), record("2.13", 0), record("2.13", 0)], "python -m experiments main")
    entries = dict(origin.entries)
    assert entries["versions"] == "torch 2.12 and 2.13"
    assert entries["seeds"] == "0, 1"
    assert entries["commit"] == "not known"
    assert entries["training data, darcy2d"] == "f" * 8
    assert origin.codes == ("python -m experiments main",)
