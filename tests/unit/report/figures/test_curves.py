"""Curves show means and spreads, losses and validation errors of runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from figure_reading import overlapping

from spectrakan.errors import ShapeError
from spectrakan.models import MODELS
from spectrakan.report.figures import error_against_time, loss_curves
from spectrakan.report.figures.appearance import LOOKS, look_of

TIMES = [0.1, 0.2, 0.3]


def line(axes, label):
    (found,) = [each for each in axes.lines if each.get_label() == label]
    return found


def test_the_mean_is_a_line_and_the_spread_a_band():
    runs = np.array([[0.1, 0.2, 0.4], [0.3, 0.2, 0.8]])
    axes = error_against_time(TIMES, {"fno": runs, "unet": [1.0, 2.0, 3.0]}, "relative L2").axes[0]
    assert np.allclose(line(axes, "FNO").get_ydata(), [0.2, 0.2, 0.6])
    assert len(axes.collections) == 1, "one seed has no spread"
    edges = axes.collections[0].get_paths()[0].vertices
    assert edges[np.isclose(edges[:, 0], 0.3), 1].min() == pytest.approx(0.4)
    assert edges[np.isclose(edges[:, 0], 0.3), 1].max() == pytest.approx(0.8)
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel() == "relative L2"


def test_the_legend_lists_curves_from_the_highest_to_the_lowest():
    figure = error_against_time(TIMES, {"fno": [1, 1, 0.1], "unet": [1, 1, 0.3], "lno": [1, 1, 0.2]}, "error")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["U-Net", "LNO", "FNO"]


def test_curves_of_another_length_are_refused():
    with pytest.raises(ShapeError, match=r"'fno' needs 3 numbers, or \(seeds, 3\), got \(2,\)"):
        error_against_time(TIMES, {"fno": [1.0, 2.0]}, "error")


def test_every_model_has_a_look_of_its_own():
    assert LOOKS.keys() == MODELS.keys()
    looks = [(look.colour, str(look.dash), look.marker) for look in LOOKS.values()]
    assert len(set(looks)) == len(looks)
    assert len({look.label for look in LOOKS.values()}) == len(LOOKS)


def test_a_variant_keeps_the_colour_of_its_model():
    assert look_of("spectrakan (paper)").colour == LOOKS["spectrakan"].colour
    assert look_of("spectrakan (paper)").dash != LOOKS["spectrakan"].dash
    assert look_of("something else").label == "something else"


def epochs(losses, validations):
    lines = [{"event": "step", "epoch": 0, "step": 1, "loss": 9.0}]
    pairs = enumerate(zip(losses, validations, strict=True))
    return lines + [
        {"event": "epoch", "epoch": n, "step": n, "loss": loss, "validation": error} for n, (loss, error) in pairs
    ]


def test_losses_and_validation_errors_of_a_run_are_drawn_by_epoch():
    figure = loss_curves({"fno": epochs([3.0, 2.0, 1.0], [0.5, 0.2, 0.3]), "unet": epochs([4.0, 4.0], [None, None])})
    losses, errors = figure.axes
    assert line(losses, "FNO").get_xdata().tolist() == [1, 2, 3]
    assert line(losses, "FNO").get_ydata().tolist() == [3.0, 2.0, 1.0]
    assert line(losses, "U-Net").get_ydata().tolist() == [4.0, 4.0]
    assert line(errors, "FNO").get_ydata().tolist() == [0.5, 0.2, 0.3]
    (best,) = [each for each in errors.lines if each.get_marker() == "o"]
    assert (best.get_xdata()[0], best.get_ydata()[0]) == (2, 0.2)
    assert losses.get_yscale() == "log"
    assert overlapping(figure) == []


def test_epochs_without_a_number_leave_a_gap():
    figure = loss_curves({"fno": epochs([1.0, "nan", 0.5], [None, None, None])})
    assert [math.isnan(value) for value in line(figure.axes[0], "FNO").get_ydata()] == [False, True, False]
    assert loss_curves({"fno": []}).axes[0].get_xlabel() == "epoch"


def test_figures_display_in_notebooks():
    assert loss_curves({"fno": epochs([1.0], [1.0])})._repr_png_().startswith(b"\x89PNG")


def test_no_words_are_written_over_others():
    many = {name: [0.1 * (number + 1)] * 3 for number, name in enumerate(LOOKS)}
    assert overlapping(error_against_time(TIMES, many, "relative L2")) == []
