"""Figures show the numbers they are given, and pages are whole files."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from matplotlib.image import imread

from spectrakan.errors import ShapeError
from spectrakan.report import Picture, error_against_time, fields_side_by_side, page


def test_the_same_numbers_give_the_same_picture_and_others_another():
    field = np.linspace(0, 1, 64).reshape(8, 8)
    drawn = fields_side_by_side({"truth": field, "error": 0 * field}, error_columns=("error",))
    assert drawn == fields_side_by_side({"truth": field, "error": 0 * field}, error_columns=("error",))
    assert drawn != fields_side_by_side({"truth": field.T, "error": 0 * field}, error_columns=("error",))


def test_the_first_axis_runs_to_the_right():
    field = np.zeros((16, 16))
    field[-1] = 1.0  # the far end of x
    picture = imread(io.BytesIO(fields_side_by_side({"field": field})))
    middle = picture[picture.shape[0] // 2, :, :3]
    yellow = (middle[:, 0] > 0.8) & (middle[:, 1] > 0.8) & (middle[:, 2] < 0.4)
    dark = (middle[:, 0] < 0.35) & (middle[:, 1] < 0.1)
    assert yellow.any()
    assert dark.any()
    assert np.flatnonzero(yellow).min() > np.flatnonzero(dark).min()


def test_fields_of_different_shapes_are_refused():
    with pytest.raises(ShapeError, match="one shape"):
        fields_side_by_side({"a": np.zeros((4, 4)), "b": np.zeros((5, 5))})


def test_a_page_holds_its_pictures_and_escapes_words():
    png = error_against_time([0.1, 0.2], {"fno": [0.01, 0.02]}, "relative L2")
    text = page("<title>", ["a & b"], [["model"], ["<fno>"]], [Picture(png, 'a "caption"')])
    assert "<script" not in text
    assert "&lt;fno&gt;" in text
    assert "a &amp; b" in text
    stored = re.search(r"base64,([^\"]+)", text)
    assert stored is not None
    assert base64.b64decode(stored[1]) == png
