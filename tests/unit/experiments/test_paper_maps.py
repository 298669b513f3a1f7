"""Maps of the paper's page show the numbers and times that they are given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from figure_reading import drawn, maps, mesh, overlapping, titled
from figure_samples import sample_2d, sample_globe

from experiments.paper_maps import fields_by_row, globe_maps, time_strips
from spectrakan.errors import ConfigError


def test_latitudes_count_by_their_area():
    figure = globe_maps(sample_globe())
    # The middle latitude covers half of the sphere: sin 30 - sin(-30) = 1 of 2.
    assert titled(figure, "error").get_title() == f"error: RMSE {2.0 * np.sqrt(0.5):.3g} hPa"


def test_a_globe_has_longitudes_across_and_latitudes_up():
    sample = sample_globe()
    figure = globe_maps(sample)
    assert np.array_equal(drawn(titled(figure, "truth")), sample.truth[0])
    assert np.array_equal(drawn(titled(figure, "input")), sample.given[0])
    below = titled(figure, "truth")
    assert below.get_ylim() == (-90.0, 90.0)
    assert below.get_xlabel() == "longitude (°E)"
    assert titled(figure, "input").get_ylabel() == "latitude (°N)"
    labels = {axes.get_ylabel() for axes in figure.axes}
    assert {"temperature (K)", "pressure (hPa)", "error (hPa)"} <= labels


def test_strips_show_the_instants_asked_for():
    sample = sample_2d(models=3, steady=False)
    figure = time_strips(sample, [0.11, 0.21], ["model2", "model0"])
    truths = [axes for axes in maps(figure) if axes.get_title().startswith("truth")]
    assert [axes.get_title() for axes in truths] == ["truth, t = 0.11", "truth, t = 0.21"]
    assert np.array_equal(drawn(truths[1]), sample.truth[2].T)
    errors = [axes for axes in maps(figure) if axes.get_title().startswith("RMSE")]
    assert [axes.get_title() for axes in errors] == ["RMSE 0.3"] * 2 + ["RMSE 0.1"] * 2
    written = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert {"model2", "error of\nmodel0"} <= written
    assert "model1" not in written


def test_unknown_instants_and_models_are_refused():
    sample = sample_2d(steady=False)
    with pytest.raises(ConfigError, match=r"no frame at t = 0\.5; known: 0\.11"):
        time_strips(sample, [0.5])
    with pytest.raises(ConfigError, match="no prediction of fno"):
        time_strips(sample, [0.11], ["fno"])


def test_rows_of_fields_have_scales_of_their_own():
    height = sample_2d(steady=False)
    speed = replace(height, truth=height.truth * 100, predictions={"model0": height.truth * 100 + 1.0})
    figure = fields_by_row([height, speed], "model0", 0.16)
    truths = [mesh(axes).get_clim() for axes in maps(figure) if axes.get_title() == "truth, t = 0.16"]
    assert truths == [(1.0, 4.5), (100.0, 450.0)]
    assert [axes.get_title() for axes in maps(figure) if axes.get_title().startswith("error")] == [
        "error: RMSE 0.1",
        "error: RMSE 1",
    ]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: time_strips(sample_2d(models=2, steady=False), [0.11, 0.16, 0.21]),
        lambda: fields_by_row([sample_2d(steady=False)] * 3, "model0", 0.16),
        lambda: globe_maps(sample_globe()),
    ],
)
def test_no_words_are_written_over_others(draw):
    assert overlapping(draw()) == []
