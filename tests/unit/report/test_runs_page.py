"""The page of any runs: every score, curve and setting of the records that it is given."""

from __future__ import annotations

import re

import pytest
from page_outline import outline

from spectrakan.errors import ConfigError
from spectrakan.report import RunReport, runs_page
from spectrakan.runs import make_record


def record(model: str, error: float | None, task: str = "heat", **more: object) -> dict:
    entries: dict = {
        "task": task,
        "model": model,
        "variant": "default",
        "seed": 0,
        "metrics": {"relative_l2": error, "rmse": 2.5 if error is None else error / 10},
        "metrics_per_field": {"u": {"relative_l2": error}},
        "parameters": 1234,
        "train_seconds": 5.5,
        "config": {"task": task, "model": {"name": model, "width": 8}},
        "provenance": {"data_sha256": "a", "versions": {"torch": "2.13"}, "system": "Linux"},
    }
    return make_record(**{**entries, **more})


def log(*losses: float) -> list[dict]:
    return [
        {"event": "epoch", "epoch": n, "step": n, "loss": loss, "validation": loss} for n, loss in enumerate(losses)
    ]


def cells(text: str) -> list[str]:
    return re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", text)


def test_every_run_is_in_the_table_of_its_problem_with_all_metrics():
    runs = [
        RunReport("a", record("fno", 0.2)),
        RunReport("b", record("spectrakan", 0.1)),
        RunReport("c", record("unet", 0.3, "waves")),
    ]
    text = runs_page(runs, "spectrakan report a b c")
    found = outline(text)
    assert [each["id"] for each in found.named("section")] == ["heat", "waves"]
    shown = cells(text)
    first = shown.index("b")
    assert shown[first : first + 6] == ["b", "spectrakan", "1234", "5.5", "0.1", "0.01"]
    assert {"class": "best", "data-value": "0.1"} in found.named("td")
    assert "spectrakan report a b c" in found.words
    assert "(" not in "".join(shown), "the paper has no such problem"
    assert not re.search(r"https?:|@import|url\(", text)


def test_the_papers_numbers_stand_beside_its_own_tasks_only():
    text = runs_page([RunReport("a", record("spectrakan", 0.1, "darcy2d"))])
    assert "0.01 (0.0126)" in cells(text)
    assert "the paper's value" in outline(text).words.lower()
    ablated = runs_page([RunReport("a", record("spectrakan", 0.1, "darcy2d", variant="no_token"))])
    assert "0.01" in cells(ablated)


def test_runs_on_other_data_are_marked_and_scores_that_are_missing_are_a_dash():
    runs = [RunReport("a", record("fno", None)), RunReport("b", record("unet", 0.1, provenance={"data_sha256": "b"}))]
    text = runs_page(runs)
    assert "different data" in outline(text).words
    assert "–" in cells(text)
    assert "different data" not in outline(runs_page(runs[:1])).words


def test_fields_have_a_table_where_there_are_several():
    by_field = {"height": {"relative_l2": 0.25}, "speed": {"relative_l2": 0.75}}
    assert {"height", "speed", "0.25", "0.75"} <= set(
        cells(runs_page([RunReport("a", record("fno", 0.5, metrics_per_field=by_field))]))
    )


def test_losses_and_errors_in_time_are_drawn_from_logs_details_and_evaluations():
    plain = RunReport("a", record("fno", 0.2))
    assert outline(runs_page([plain])).named("img") == []
    trained = RunReport("a", record("fno", 0.2), log(0.5, 0.25))
    (losses,) = outline(runs_page([trained])).named("img")
    assert "loss" in losses["alt"]
    frames = {"times": [0.1, 0.2], "metrics_per_frame": {"relative_l2": [0.1, 0.4]}}
    evaluation = {"model": "fno", "metrics": {"relative_l2": 0.3}, **frames}
    by_details = RunReport("a", record("fno", 0.2, details=frames))
    later = RunReport("b", record("unet", 0.2), (), {"new-file": evaluation})
    text = runs_page([by_details, later])
    (growth,) = outline(text).named("img")
    assert "fno 0.4, unet 0.4" in growth["alt"], "equal times share one figure"
    assert "b: new-file" in cells(text)


def test_two_runs_of_one_model_are_told_apart():
    runs = [RunReport(name, record("fno", 0.2), log(1.0)) for name in ("first", "second")]
    (losses,) = outline(runs_page(runs)).named("img")
    assert "fno (first), fno (second)" in losses["alt"]


def test_settings_and_provenance_are_folded():
    found = outline(runs_page([RunReport("a", record("fno", 0.2))]))
    assert len(found.named("details")) == 2
    for words in ("Settings of a", "model.width", "torch 2.13"):
        assert words in found.words


def test_no_runs_and_equal_names_are_refused():
    with pytest.raises(ConfigError, match="at least one finished run"):
        runs_page([])
    with pytest.raises(ConfigError, match="come twice: a"):
        runs_page([RunReport("a", record("fno", 0.2))] * 2)
