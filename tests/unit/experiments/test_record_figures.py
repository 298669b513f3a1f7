"""Figures from records show the records' numbers."""

from __future__ import annotations

import numpy as np
import pytest
from campaign_records import small_campaign

from experiments.record_figures import (
    cost_figures,
    efficiency_figures,
    growth_figures,
    stability_figures,
)


def lines(figure) -> dict[str, np.ndarray]:
    return {str(line.get_label()): line.get_ydata() for line in figure.axes[0].lines}


def test_errors_against_time_are_means_over_seeds(tmp_path):
    ((plate, figure),) = growth_figures(small_campaign(tmp_path))
    assert plate.caption.startswith("cns1d:")
    assert np.allclose(lines(figure)["SpectraKAN"], [0.12, 0.24])
    assert np.allclose(lines(figure)["FNO"], [0.3, 0.6])
    assert "SpectraKAN 0.24, FNO 0.6" in plate.alt


def test_long_rollouts_are_drawn_beyond_the_scored_part(tmp_path):
    ((plate, figure),) = stability_figures(small_campaign(tmp_path))
    axes = figure.axes[0]
    ground = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert ground.x1 == pytest.approx(0.55), "two frames are scored"
    assert lines(figure)["SpectraKAN"][-1] == pytest.approx(0.4)
    assert np.isnan(lines(figure)["FNO"][-1]), "null in a record is not a number"
    assert "five horizons" in plate.caption


def test_cost_is_seconds_and_error_of_each_model(tmp_path):
    ((plate, figure),) = cost_figures(small_campaign(tmp_path))
    flow = figure.axes[0]
    assert flow.get_title() == "cns1d"
    points = {box.get_label(): box[0].get_xydata()[0].tolist() for box in flow.containers}
    assert points == {"SpectraKAN": pytest.approx([30.0, 0.12]), "FNO": pytest.approx([20.0, 0.3])}
    assert "SpectraKAN 0.12 after 30 s" in plate.alt


def test_data_efficiency_ends_with_the_whole_set(tmp_path):
    ((plate, figure),) = efficiency_figures(small_campaign(tmp_path))
    assert np.allclose(lines(figure)["FNO"], [1.0, 0.5])
    assert figure.axes[0].lines[0].get_xdata().tolist() == [5, 10]
    assert plate.caption.startswith("darcy2d:")


def test_without_records_nothing_is_drawn(tmp_path):
    archive = small_campaign(tmp_path)
    for path in archive.folder.rglob("*.json"):
        path.unlink()
    for drawn in (growth_figures, stability_figures, cost_figures, efficiency_figures):
        assert list(drawn(archive)) == []
