"""The bench command: every model is measured, ratios are over the first, and wrong names are told."""

from __future__ import annotations

import json

import pytest

from spectrakan.cli.bench import bench
from spectrakan.errors import ConfigError


def test_models_are_measured_and_compared_with_the_first(capsys):
    bench("cns1d", ["fno", "persistence"], 32, 2, 3, "cpu", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["cells"], found["device"]) == ("cns1d", [32], "cpu")
    first, second = found["models"]
    assert (first["model"], first["step_ratio"], first["inference_ratio"]) == ("fno", 1.0, 1.0)
    assert first["parameters"] > 0
    assert second["parameters"] == 0
    assert 0 < second["step_ratio"] < 1, "repeating a frame is cheaper than FNO"
    assert min(first["step_ms"], first["inference_ms"]) > 0


def test_the_table_names_what_was_measured(capsys):
    bench("darcy2d", ["spectrakan"], 16, 1, 1, "cpu", as_json=False)
    title, head, row = capsys.readouterr().out.splitlines()
    assert title == "darcy2d, 16 x 16 cells, cpu, medians of 1 rounds in turns:"
    assert head.split("  ")[0] == "model"
    assert "step of 1, ms" in head
    assert row.startswith("spectrakan")


def test_an_unknown_task_is_told_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'darcy2d'"):
        bench("darcy")
