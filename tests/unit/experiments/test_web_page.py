"""The report is one page with everything inside, also from part of the records."""

from __future__ import annotations

import re

from campaign_records import made_up, small_campaign
from matplotlib.figure import Figure
from page_outline import outline

from experiments.archive import Archive
from experiments.cells import Cell
from experiments.gallery import Plate, keep_plate
from experiments.web_page import missing_section, web_page


def test_part_of_a_campaign_makes_a_whole_page(tmp_path):
    archive = small_campaign(tmp_path)
    figure = Figure(figsize=(2, 1))
    keep_plate(archive.folder / "figures", Plate("cns1d-density", "Maps of predictions", "a map", "in words"), figure)
    text = web_page(archive)
    found = outline(text)
    assert not re.search(r"https?:|@import|url\(", text)
    images = found.named("img")
    assert len(images) == 5, "time, five horizons, cost, data and the map"
    assert all(len(image["alt"]) > 5 and image["src"].startswith("data:image/png") for image in images)
    anchors = {attributes["id"] for attributes in found.named("section")}
    assert {
        "main-table",
        "error-against-time",
        "five-fold-horizon",
        "maps-of-predictions",
        "what-is-missing",
    } <= anchors
    links = {attributes["href"][1:] for attributes in found.named("a")}
    assert links == anchors | {"content"}
    assert "0.12 ± 0.03" in found.words, "mean and spread of two seeds"
    assert "7 records" in found.words


def test_every_table_says_where_it_comes_from(tmp_path):
    found = outline(web_page(small_campaign(tmp_path)))
    for fact in ("python -m experiments main --scale smoke", "torch 2.13.0", "abc123", "d" * 64, "e" * 64, "0, 1"):
        assert fact in found.words
    assert len(found.named("details")) >= 3


def test_missing_cells_and_failures_are_named(tmp_path):
    archive = small_campaign(tmp_path)
    archive.keep_failure(Cell("main", "smoke", "darcy2d", "climatology"), "RunError: diverged")
    words = missing_section(archive).elements[1].text
    assert "darcy2d-climatology-default-s0 (failed: RunError: diverged)" in words
    assert not re.search(r"darcy2d-fno-default-s0(?!-)", words), "it has a record; the trials of its rates have none"
    assert "**figures**" in words
    assert "**rates**" in words


def test_a_complete_campaign_misses_nothing(tmp_path, monkeypatch):
    archive = Archive(tmp_path, tmp_path, "smoke")
    cell = Cell("main", "smoke", "cns1d", "fno")
    archive.keep(cell, made_up(cell, 0.1))
    (archive.folder / "figures").mkdir()
    monkeypatch.setattr("experiments.web_page.stages_of", lambda names, scale: [lambda archive: [cell]])
    (told,) = missing_section(archive).elements
    assert told.text.startswith("Nothing")
