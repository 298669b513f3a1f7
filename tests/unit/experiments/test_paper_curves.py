"""Curves of the paper's page show means and spreads, and where a model diverges."""

from __future__ import annotations

import numpy as np
import pytest
from figure_reading import overlapping

from experiments.paper_curves import (
    Spent,
    accuracy_against_seconds,
    energy_by_wavenumber,
    error_against_samples,
    frontier,
    stability_curves,
)
from spectrakan.errors import ConfigError
from spectrakan.report.figures.appearance import LOOKS

TIMES = [0.1, 0.2, 0.3]


def line(axes, label):
    (found,) = [each for each in axes.lines if each.get_label() == label]
    return found


def test_the_last_number_before_an_explosion_is_crossed():
    axes = stability_curves(TIMES, {"fno": [0.1, 0.2, np.inf]}, 0.1, "relative L2").axes[0]
    cross = [each for each in axes.lines if each.get_marker() == "x"]
    assert [float(each.get_xdata()[0]) for each in cross] == [0.2]
    assert [float(each.get_ydata()[0]) for each in cross] == [0.2]


def test_the_scored_part_is_on_grey_ground():
    axes = stability_curves(TIMES, {"fno": [0.1, 0.2, 1e9]}, 0.2, "relative L2").axes[0]
    ground = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert ground.x0 == pytest.approx(0.1)
    assert ground.x1 == pytest.approx(0.2)
    assert axes.get_ylim()[1] <= 100.0


def test_spectra_begin_at_wavenumber_one_and_are_divided_by_the_truth():
    truth = np.array([9.0, 4.0, 2.0, 1.0])
    above, below = energy_by_wavenumber(truth, {"fno": truth / 2}, "energy").axes
    assert line(above, "truth").get_xdata().tolist() == [1.0, 2.0, 3.0]
    assert line(above, "truth").get_ydata().tolist() == [4.0, 2.0, 1.0]
    assert line(below, "FNO").get_ydata().tolist() == [0.5, 0.5, 0.5]


def test_energies_of_rounding_do_not_stretch_the_axis():
    truth = np.array([1.0, 1.0, 1e-4, 1e-30])
    above, _ = energy_by_wavenumber(truth, {"fno": truth}, "energy").axes
    assert above.get_ylim()[0] >= 1e-12


def test_accuracy_against_seconds_shows_means_and_spread():
    runs = {"darcy2d": {"fno": Spent([10, 30], [0.1, 0.3]), "unet": Spent([5], [0.5])}}
    axes = accuracy_against_seconds(runs, "RMSE").axes[0]
    points = {container.get_label(): container for container in axes.containers}
    (marker, _, bars) = points["FNO"]
    assert (marker.get_xdata()[0], marker.get_ydata()[0]) == (20.0, pytest.approx(0.2))
    segment = bars[0].get_segments()[0]
    assert segment[:, 1].tolist() == pytest.approx([0.1, 0.3])
    assert axes.get_title() == "darcy2d"
    assert axes.get_ylabel() == "RMSE"


def test_the_frontier_joins_the_models_that_nobody_beats_in_both():
    assert frontier([(3, 1), (1, 5), (2, 6), (2, 5), (4, 1)]) == [(1, 5), (3, 1)]


def test_data_efficiency_is_drawn_at_the_counts_of_each_task():
    counts = {"darcy2d": [100, 1000], "cns1d": [10, 20, 50]}
    errors = {"darcy2d": {"fno": [0.2, 0.1]}, "cns1d": {"fno": [3.0, 2.0, 1.0]}}
    figure = error_against_samples(counts, errors, "RMSE")
    first, second = figure.axes
    assert line(first, "FNO").get_xdata().tolist() == [100, 1000]
    assert line(second, "FNO").get_ydata().tolist() == [3.0, 2.0, 1.0]
    assert [text.get_text() for text in first.get_xticklabels()] == ["100", "1,000"]


def test_no_task_is_a_mistake():
    with pytest.raises(ConfigError, match="no task to draw"):
        error_against_samples({}, {}, "RMSE")


MANY = {name: [0.1 * (place + 1)] * 3 for place, name in enumerate(LOOKS)}


@pytest.mark.parametrize(
    "draw",
    [
        lambda: stability_curves(TIMES, MANY, 0.2, "relative L2"),
        lambda: energy_by_wavenumber([1.0, 0.1, 1e-3], MANY, "energy"),
        lambda: accuracy_against_seconds(
            {task: {name: Spent([10.0 + i], [0.001 * 1.5**i]) for i, name in enumerate(LOOKS)} for task in "abcdef"},
            "RMSE",
        ),
        lambda: accuracy_against_seconds({"a": {name: Spent([10.0], [0.1]) for name in LOOKS}}, "RMSE"),
        lambda: error_against_samples({"a": [100, 300, 1000]}, {"a": MANY}, "RMSE"),
    ],
)
def test_no_words_are_written_over_others(draw):
    assert overlapping(draw()) == []
