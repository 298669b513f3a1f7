"""`report`: from folders of runs to one page."""

from __future__ import annotations

import json

import pytest
from page_outline import outline

from spectrakan.cli.report import report
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.runs import make_record, write_record


@pytest.fixture
def run(tmp_path):
    """A finished run: record, log and one evaluation."""
    folder = tmp_path / "runs" / "heat-fno-0"
    (folder / "evaluations").mkdir(parents=True)
    scores = {"relative_l2": 0.125, "rmse": 0.5}
    write_record(folder / "record.json", make_record(task="heat", model="fno", metrics=scores, provenance={}))
    lines = [{"event": "epoch", "epoch": n, "step": n, "loss": 1.0 / (n + 1), "validation": 0.5} for n in range(3)]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = {"task": "heat", "provenance": {}, "model": "fno", "metrics": {"relative_l2": 0.375}, "times": [1.0, 2.0],
             "metrics_per_frame": {"relative_l2": [0.25, 0.5]}}  # fmt: skip
    (folder / "evaluations" / "new.json").write_text(json.dumps(found))
    return folder


def test_a_page_has_the_scores_losses_and_evaluations_of_a_run(run, tmp_path, capsys):
    report([run], output=tmp_path / "page.html")
    assert "page.html: 1 runs" in capsys.readouterr().out
    text = (tmp_path / "page.html").read_text()
    found = outline(text)
    assert len(found.named("img")) == 2
    for words in ("heat-fno-0", "0.125", "heat-fno-0: new", "0.375"):
        assert words in found.words


def test_a_folder_given_twice_counts_once_and_each_has_the_name_it_was_given(run, tmp_path):
    other = tmp_path / "others" / "heat-fno-0"
    other.parent.mkdir()
    other.mkdir()
    write_record(other / "record.json", make_record(task="heat", model="unet", metrics={}, provenance={}))
    report([run, run, other / "record.json", other], output=tmp_path / "page.html")
    words = outline((tmp_path / "page.html").read_text()).words
    assert "runs/heat-fno-0" in words
    assert "others/heat-fno-0/record.json" in words
    assert "3 runs" in words


def test_folders_without_a_finished_run_and_damaged_evaluations_are_named(run, tmp_path):
    with pytest.raises(ConfigError, match="not the folder of a run"):
        report([tmp_path])
    (tmp_path / "config.yaml").write_text("task: heat")
    with pytest.raises(ConfigError, match="train --resume"):
        report([tmp_path])
    (run / "evaluations" / "new.json").write_text("{")
    with pytest.raises(DataFormatError, match=r"new\.json' is not valid JSON"):
        report([run])
    (run / "evaluations" / "new.json").write_text("{}")
    with pytest.raises(DataFormatError, match="neither a record nor an evaluation"):
        report([run])
