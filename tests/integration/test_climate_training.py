"""The climate task after a plain install: floors score what they must, and anomalies stand beside the error."""

from __future__ import annotations

import spectrakan as sk


def test_the_mean_field_explains_nothing_of_the_anomalies_though_its_relative_error_is_small():
    record = sk.train("climate2d", model="climatology", overrides=["training.epochs=1"]).record
    metrics = record["metrics"]
    assert abs(metrics["anomaly_r2"]) < 1e-4
    assert metrics["relative_l2"] < 0.01, "below one per cent"
    assert 4 < metrics["rmse"] < 10, "hPa"
    assert record["metrics_per_field"]["pressure"]["anomaly_r2"] == metrics["anomaly_r2"]


def test_ridge_explains_a_good_part_of_them():
    metrics = sk.train("climate2d", model="ridge", overrides=["training.epochs=1"]).record["metrics"]
    assert metrics["anomaly_r2"] > 0.3
    assert metrics["rmse"] < 5, "hPa"
