"""Figures as files: the right formats, the same bytes for the same numbers, the user's settings untouched."""

from __future__ import annotations

import matplotlib
import pytest
from figure_reading import overlapping
from figure_samples import sample_2d
from matplotlib.figure import Figure

from spectrakan.errors import ConfigError
from spectrakan.report.figures import error_against_time, field_maps, figure_bytes, save_figure


def drawn_maps(models: int = 2) -> Figure:
    sample = sample_2d(models)
    first = {name: values[0] for name, values in sample.predictions.items()}
    return field_maps(sample.field, sample.grid, sample.truth[0], first)


@pytest.mark.parametrize(("kind", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_each_format_is_what_it_says_and_repeats_itself(tmp_path, kind, begin):
    save_figure(drawn_maps(), tmp_path / f"a.{kind}")
    written = (tmp_path / f"a.{kind}").read_bytes()
    assert written.startswith(begin)
    assert figure_bytes(drawn_maps(), kind) == written
    assert figure_bytes(drawn_maps(models=1), kind) != written


def test_words_in_svg_stay_words():
    text = figure_bytes(error_against_time([1, 2], {"fno": [1, 2]}, "relative L2"), "svg").decode()
    assert ">FNO</text>" in text
    assert ">relative L2</text>" in text


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="png, svg, pdf, got 'gif'"):
        save_figure(drawn_maps(), tmp_path / "a.gif")


def test_figures_look_the_same_whatever_the_user_has_set():
    expected = figure_bytes(error_against_time([1, 2], {"fno": [1, 2]}, "error"))
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "text.usetex": False}):
        before = {name: matplotlib.rcParams[name] for name in ("font.size", "axes.facecolor", "font.family")}
        assert figure_bytes(error_against_time([1, 2], {"fno": [1, 2]}, "error")) == expected
        assert {name: matplotlib.rcParams[name] for name in before} == before


def test_words_over_words_would_be_seen():
    figure = error_against_time([1, 2], {"fno": [1, 2]}, "error")
    assert overlapping(figure) == []
    figure.text(0.5, 0.5, "one")
    figure.text(0.505, 0.5, "other")
    figure.text(0.99, 0.1, "outside")
    assert ("one", "other") in overlapping(figure)
    assert ("outside", "the figure's edge") in overlapping(figure)
