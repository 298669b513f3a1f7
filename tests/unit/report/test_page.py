"""Pages are whole files: valid, escaped, with everything inside."""

from __future__ import annotations

import base64
import re

import pytest
from page_outline import outline

from spectrakan.errors import ConfigError
from spectrakan.report import Column, Origin, Paragraph, Picture, Row, Score, Section, Table, page
from spectrakan.report.figures import error_against_time, figure_bytes


@pytest.fixture
def picture() -> Picture:
    png = figure_bytes(error_against_time([0.1, 0.2], {"fno": [0.01, 0.02]}, "relative L2"))
    return Picture(png, 'a "caption" & more', "one curve <rising>")


@pytest.fixture
def text(picture) -> str:
    table = Table("c", (Column("RMSE"),), (Row("<fno>", (Score(0.1),)), Row("b", (Score(None),))))
    origin = Origin("Where these come from", [("seeds", "0, 1")], ["python -m experiments main"])
    return page(
        "A <title>",
        [Paragraph("a & b")],
        [Section("First", [table, origin]), Section("Second part", [picture, Paragraph("watch", note=True)])],
        "made from records",
    )


def test_tags_nest_and_words_are_escaped(text):
    found = outline(text)
    for words in ("A <title>", "a & b", "<fno>", 'a "caption" & more', "made from records"):
        assert words in found.words
    assert text.startswith("<!doctype html>")
    assert [attributes["lang"] for attributes in found.named("html")] == ["en"]
    assert {"charset": "utf-8"} in found.named("meta")
    assert any(attributes.get("name") == "viewport" for attributes in found.named("meta"))


def test_nothing_is_fetched(text):
    found = outline(text)
    assert not found.named("link")
    assert all("src" not in attributes for attributes in found.named("script"))
    assert all((attributes["src"] or "").startswith("data:image/png;base64,") for attributes in found.named("img"))
    assert all((attributes["href"] or "").startswith("#") for attributes in found.named("a"))
    assert not re.search(r"https?:|@import|url\(", text)


def test_the_navigation_leads_to_every_section(text):
    found = outline(text)
    targets = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(set(targets)) == len(targets)
    links = [(attributes["href"] or "")[1:] for attributes in found.named("a")]
    assert set(links) == {"content", "first", "second-part"}
    assert set(links) <= set(targets)


def test_pictures_are_inside_with_words_that_stand_for_them(text, picture):
    (image,) = outline(text).named("img")
    assert base64.b64decode(image["src"].partition(",")[2]) == picture.png
    assert image["alt"] == "one curve <rising>"
    assert int(image["width"]) > int(image["height"]) > 0


def test_a_picture_without_words_is_refused(picture):
    with pytest.raises(ConfigError, match="caption or an alternative"):
        Picture(picture.png, " ")
    with pytest.raises(ConfigError, match="PNG"):
        page("a", [], [Section("b", [Picture(b"GIF89a", "no")])])


def test_numbers_carry_the_value_they_are_sorted_by(text):
    cells = outline(text).named("td")
    assert cells[0] == {"class": "best", "data-value": "0.1"}
    assert "data-value" not in cells[1]


def test_equal_titles_are_refused():
    with pytest.raises(ConfigError, match="come twice: same"):
        page("a", [], [Section("same", []), Section("Same!", [])])
