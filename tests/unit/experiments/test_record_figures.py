"""Figures from records show the records' numbers."""

from __future__ import annotations

import numpy as np
import pytest
from campaign_records import small_campaign

from spectrakan.experiments import record_figures
from spectrakan.experiments.record_figures import (
    cost_pictures,
    efficiency_pictures,
    growth_pictures,
    stability_pictures,
)


@pytest.fixture
def drawn(monkeypatch):
    """The figures that would become pictures."""
    kept = []

    def keep(figure):
        kept.append(figure)
        return b"\x89PNG\r\n\x1a\n" + bytes(16)

    monkeypatch.setattr(record_figures, "figure_bytes", keep)
    return kept


def lines(figure) -> dict[str, np.ndarray]:
    return {str(line.get_label()): line.get_ydata() for line in figure.axes[0].lines}


def test_errors_against_time_are_means_over_seeds(tmp_path, drawn):
    (picture,) = growth_pictures(small_campaign(tmp_path))
    assert picture.caption.startswith("cns1d:")
    assert np.allclose(lines(drawn[0])["SpectraKAN"], [0.12, 0.24])
    assert np.allclose(lines(drawn[0])["FNO"], [0.3, 0.6])
    assert "SpectraKAN 0.24, FNO 0.6" in picture.alt


def test_long_rollouts_are_drawn_beyond_the_scored_part(tmp_path, drawn):
    (picture,) = stability_pictures(small_campaign(tmp_path))
    axes = drawn[0].axes[0]
    ground = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert ground.x1 == pytest.approx(0.55), "two frames are scored"
    assert lines(drawn[0])["SpectraKAN"][-1] == pytest.approx(0.4)
    assert np.isnan(lines(drawn[0])["FNO"][-1]), "null in a record is not a number"
    assert "five horizons" in picture.caption


def test_cost_is_seconds_and_error_of_each_model(tmp_path, drawn):
    (picture,) = cost_pictures(small_campaign(tmp_path))
    flow = drawn[0].axes[0]
    assert flow.get_title() == "cns1d"
    points = {box.get_label(): box[0].get_xydata()[0].tolist() for box in flow.containers}
    assert points == {"SpectraKAN": pytest.approx([30.0, 0.12]), "FNO": pytest.approx([20.0, 0.3])}
    assert "SpectraKAN 0.12 after 30 s" in picture.alt


def test_data_efficiency_ends_with_the_whole_set(tmp_path, drawn):
    (picture,) = efficiency_pictures(small_campaign(tmp_path))
    assert np.allclose(lines(drawn[0])["FNO"], [1.0, 0.5])
    assert drawn[0].axes[0].lines[0].get_xdata().tolist() == [5, 10]
    assert picture.caption.startswith("darcy2d:")


def test_without_records_nothing_is_drawn(tmp_path, drawn):
    archive = small_campaign(tmp_path)
    for path in archive.folder.rglob("*.json"):
        path.unlink()
    for pictures in (growth_pictures, stability_pictures, cost_pictures, efficiency_pictures):
        assert list(pictures(archive)) == []
    assert drawn == []
