"""Figures are kept as files with a note of what they show."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from experiments.gallery import Plate, keep_plate, read_plates
from spectrakan.errors import ConfigError, DataFormatError


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
