"""`compare`: order, marks, the paper's numbers, and exports."""

from __future__ import annotations

import pytest

from spectrakan.cli.compare import compare
from spectrakan.errors import ConfigError
from spectrakan.report import scores_table
from spectrakan.runs import make_record, write_record


def record(model: str, error: float, task: str = "darcy2d", sha: str = "a") -> dict:
    return make_record(
        task=task,
        model=model,
        metrics={"relative_l2": error, "rmse": error / 10},
        parameters=7,
        train_seconds=1.0,
        provenance={"data_sha256": sha},
    )


@pytest.fixture
def runs(tmp_path):
    for name, error in (("spectrakan", 0.2), ("fno", 0.1)):
        folder = tmp_path / name
        folder.mkdir()
        write_record(folder / "record.json", record(name, error))
    return [tmp_path / "spectrakan", tmp_path / "fno"]


def test_the_best_comes_first_and_the_paper_stands_beside_it(runs, tmp_path, capsys):
    compare(runs, export=tmp_path / "t.md")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[1:3]] == ["fno", "spectrakan"]
    assert "0.01 (0.02575)" in lines[1]
    assert lines[-1].startswith("In brackets")
    assert "**0.01** (0.02575)" in (tmp_path / "t.md").read_text()


def test_different_data_and_different_tasks_are_told(runs, tmp_path):
    mixed = scores_table("scores", {"a": record("fno", 0.1), "b": record("fno", 0.1, sha="b")})
    assert "different data" in mixed.notes[-1]
    write_record(tmp_path / "other.json", record("fno", 0.1, task="cns1d"))
    with pytest.raises(ConfigError, match="different problems"):
        compare([runs[0], tmp_path / "other.json"])
