"""Maps show the numbers they are given, on scales that can be compared, with nothing written over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from figure_reading import bars, drawn, maps, mesh, overlapping, titled
from figure_samples import sample_1d, sample_2d, sample_globe

from experiments.sample_maps import instant_maps, space_time_maps
from spectrakan.errors import ShapeError


def test_space_time_maps_show_truth_prediction_and_error():
    sample = sample_1d()
    figure = space_time_maps(sample)
    assert np.allclose(drawn(titled(figure, "truth")), sample.truth)
    assert np.allclose(drawn(titled(figure, "input")), sample.given)
    assert np.allclose(drawn(titled(figure, "model1")), sample.predictions["model1"])
    errors = [drawn(axes) for axes in maps(figure) if axes.get_title() == "error"]
    assert [round(float(error.mean()), 6) for error in errors] == [0.01, 0.02]
    assert "RMSE 0.02" in titled(figure, "model1").get_title()


def test_space_runs_to_the_right_and_time_upwards():
    sample = sample_1d()
    axes = titled(space_time_maps(sample), "truth")
    corners = mesh(axes).get_coordinates()
    assert corners[0, 0, 0] == -1.0
    assert corners[0, -1, 0] == 1.0
    assert corners[0, 0, 1] == pytest.approx(0.3)
    assert corners[-1, 0, 1] == pytest.approx(1.1)
    assert axes.get_ylabel() == "t"


def test_truth_and_predictions_share_limits_and_errors_have_their_own_about_zero():
    sample = sample_2d(models=3)
    figure = instant_maps(sample)
    limits = {titled(figure, name).collections[0].get_clim() for name in ("truth", "model0", "model1", "model2")}
    assert limits == {(sample.truth.min(), sample.truth.max())}
    errors = {mesh(axes).get_clim() for axes in maps(figure) if axes.get_title() == "error"}
    # The widest error of the model in the middle of the three.
    assert [round(bound, 9) for bound in errors.pop()] == [-0.2, 0.2]
    assert not errors
    assert mesh(titled(figure, "input")).get_clim() == (5.0, 7.0)


def test_an_explosion_does_not_hide_the_others_and_is_marked_on_the_bar():
    sample = sample_2d(models=3)
    said = {**sample.predictions, "model2": sample.truth * 1e6}
    figure = instant_maps(replace(sample, predictions=said))
    assert mesh(titled(figure, "model0")).get_clim() == (sample.truth.min(), sample.truth.max())
    assert bars(figure)[0]._colorbar.extend == "both"


def test_what_is_no_number_is_left_to_the_grey_ground():
    sample = sample_2d()
    said = {"model0": sample.truth * np.nan, "model1": sample.predictions["model1"]}
    figure = instant_maps(replace(sample, predictions=said))
    assert mesh(titled(figure, "model0")).get_array().mask.all()
    assert titled(figure, "model0").get_facecolor()[:3] == (0.6, 0.6, 0.6)
    assert "nan" in titled(figure, "model0").get_title()


def test_the_first_axis_of_a_field_runs_to_the_right():
    sample = sample_2d()
    axes = titled(instant_maps(sample), "truth")
    assert np.array_equal(drawn(axes), sample.truth[0].T)
    assert axes.get_xlim() == (0.0, 1.0)
    assert axes.get_ylim() == (0.0, 1.5)
    box = axes.get_window_extent()
    assert box.height / box.width == pytest.approx(1.5)


def test_bars_have_units():
    labels = {axes.get_ylabel() for axes in instant_maps(sample_2d()).axes}
    assert {"pressure (hPa)", "coefficient", "error"} <= labels


def test_fields_of_both_signs_have_zero_in_the_middle():
    sample = sample_2d(steady=False)
    moved = replace(sample, truth=sample.truth - 2.5, predictions={"fno": sample.truth - 2.5})
    low, high = mesh(titled(instant_maps(moved, frame=0), "truth")).get_clim()
    assert low == -high
    assert high == np.abs(moved.truth[0]).max()


def test_a_title_tells_the_error_of_the_frame_shown():
    sample = sample_2d(steady=False)
    said = {"fno": sample.truth + np.array([0.1, 0.2, 0.4])[:, None, None]}
    figure = instant_maps(replace(sample, predictions=said), frame=1)
    assert titled(figure, "FNO").get_title() == "FNO\nRMSE 0.2"
    assert titled(figure, "truth").get_title() == "truth, t = 0.16"


@pytest.mark.parametrize(
    "draw",
    [
        lambda: space_time_maps(sample_1d(models=9)),
        lambda: instant_maps(sample_2d(models=9)),
        lambda: instant_maps(sample_2d(models=1, steady=False)),
        lambda: instant_maps(sample_globe()),
    ],
)
def test_no_words_are_written_over_others(draw):
    assert overlapping(draw()) == []


def test_latitudes_run_upwards_and_longitudes_to_the_right():
    sample = sample_globe()
    axes = titled(instant_maps(sample), "truth")
    assert np.array_equal(drawn(axes), sample.truth[0])
    assert axes.get_ylim() == (-90.0, 90.0)
    assert axes.get_ylabel() == "latitude (°N)"


def test_wrong_dimensions_are_refused():
    with pytest.raises(ShapeError, match="one axis of space"):
        space_time_maps(sample_2d(steady=False))
    with pytest.raises(ShapeError, match="two axes of space"):
        instant_maps(sample_1d())
    with pytest.raises(ShapeError, match="model0 must have shape"):
        replace(sample_2d(), predictions={"model0": np.zeros((1, 4, 4))})
