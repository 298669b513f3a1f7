"""Maps show the numbers they are given, on scales that can be compared, with nothing written over."""

from __future__ import annotations

import numpy as np
import pytest
from figure_reading import bars, drawn, maps, mesh, overlapping, titled
from figure_samples import sample_1d, sample_2d
from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures import field_maps


def plane(models: int = 2, **changes: np.ndarray) -> Figure:
    """The first instant of the sample on two axes; model i errs by ± (i + 1) tenths."""
    sample = sample_2d(models)
    predictions = {name: values[0] for name, values in sample.predictions.items()} | changes
    return field_maps(sample.field, sample.grid, sample.truth[0], predictions)


def line(models: int = 2) -> Figure:
    """The sample on one axis of space; model i errs by i + 1 hundredths everywhere."""
    sample = sample_1d(models)
    return field_maps(sample.field, sample.grid, sample.truth, sample.predictions, sample.times)


def test_truth_prediction_and_error_are_drawn_over_space_and_time():
    sample, figure = sample_1d(), line()
    assert np.allclose(drawn(titled(figure, "truth")), sample.truth)
    assert np.allclose(drawn(titled(figure, "model1")), sample.predictions["model1"])
    errors = [drawn(axes) for axes in maps(figure) if axes.get_title() == "error"]
    assert [round(float(error.mean()), 6) for error in errors] == [0.01, 0.02]
    assert titled(figure, "model1").get_title() == "model1\nRMSE 0.02"
    corners = mesh(titled(figure, "truth")).get_coordinates()
    assert (corners[0, 0, 0], corners[0, -1, 0]) == pytest.approx((-1.0, 1.0))
    assert (corners[0, 0, 1], corners[-1, 0, 1]) == pytest.approx((0.3, 1.1))
    assert titled(figure, "truth").get_ylabel() == "t"


def test_the_first_axis_of_a_field_runs_to_the_right():
    axes = titled(plane(), "truth")
    assert np.array_equal(drawn(axes), sample_2d().truth[0].T)
    assert (axes.get_xlim(), axes.get_ylim()) == ((0.0, 1.0), pytest.approx((0.0, 1.5)))


def test_truth_and_predictions_share_limits_and_errors_have_their_own_about_zero():
    figure, truth = plane(models=3), sample_2d().truth
    limits = {mesh(titled(figure, name)).get_clim() for name in ("truth", "model0", "model1", "model2")}
    assert limits == {(truth.min(), truth.max())}
    (errors,) = {mesh(axes).get_clim() for axes in maps(figure) if axes.get_title() == "error"}
    # The widest error of the model in the middle of the three.
    assert errors == pytest.approx((-0.2, 0.2))
    assert {axes.get_ylabel() for axes in bars(figure)} == {"pressure (hPa)", "error"}


def test_an_explosion_does_not_hide_the_others_and_is_marked_on_the_bar():
    truth = sample_2d().truth[0]
    figure = plane(3, model2=truth * 1e6)
    assert mesh(titled(figure, "model0")).get_clim() == (truth.min(), truth.max())
    assert bars(figure)[0]._colorbar.extend == "both"
    assert bars(figure)[1]._colorbar.extend == "max"


def test_what_is_no_number_is_left_to_the_grey_ground():
    figure = plane(model0=sample_2d().truth[0] * np.nan)
    assert mesh(titled(figure, "model0")).get_array().mask.all()
    assert titled(figure, "model0").get_facecolor()[:3] == (0.6, 0.6, 0.6)
    assert "nan" in titled(figure, "model0").get_title()


def test_an_error_weighs_cells_by_their_volume():
    sample = sample_2d()
    wrong = np.zeros(sample.grid.shape)
    wrong[0] = 1.0
    shown = titled(plane(model0=sample.truth[0] + wrong), "model0").get_title()
    assert shown == f"model0\nRMSE {np.sqrt(sample.grid.volumes().numpy()[0].sum()):.3g}"


@pytest.mark.parametrize("draw", [lambda: line(9), lambda: plane(9), lambda: plane(1)])
def test_no_words_are_written_over_others(draw):
    assert overlapping(draw()) == []


def test_other_shapes_are_refused():
    sample = sample_2d()
    with pytest.raises(ShapeError, match="model0 must be"):
        plane(model0=np.zeros((4, 4)))
    with pytest.raises(ShapeError, match="truth must be"):
        field_maps(sample.field, sample.grid, sample.truth, {})
