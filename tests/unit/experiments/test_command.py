"""Words of `python -m experiments` that name nothing are errors, with the nearest name."""

from __future__ import annotations

import pytest

from experiments.command import reproduce
from experiments.page_command import report
from spectrakan.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"case": ["darcy3d"]}, "no task 'darcy3d'.*darcy2d"),
        ({"model": ["fnno"]}, "unknown model 'fnno'.*fno"),
        ({"words": ["mian"]}, "unknown table 'mian'.*main"),
        ({"words": ["main", "model.width=3"]}, "give them with --validation-only"),
        ({"scale": "smal"}, "unknown scale 'smal'.*smoke"),
        ({"words": ["main"], "model": ["amfno"]}, "no cell of main at scale smoke fits"),
        ({"words": ["main"], "model": ["fno/papper"]}, "no cell of main"),
        ({"words": ["main"], "seed": [7]}, "no cell of main"),
        ({"case": ["climate2d"]}, "scale smoke has no task 'climate2d'"),
    ],
)
def test_unknown_words_are_errors(options, message, tmp_path):
    given = {"scale": "smoke", "jobs": 0, "results": tmp_path, "cache": tmp_path / "cache", **options}
    with pytest.raises(ConfigError, match=message):
        reproduce(**given)
    assert not list(tmp_path.rglob("*.json"))


def test_the_page_knows_the_scales(tmp_path):
    with pytest.raises(ConfigError, match=r"unknown scale 'shrt'.*short"):
        report(tmp_path, tmp_path / "page.html", "shrt")
    with pytest.raises(ConfigError, match="holds no records"):
        report(tmp_path, tmp_path / "page.html", "short")


def test_a_dry_run_lists_cells_with_their_cost(tmp_path, capsys):
    reproduce(["main"], "smoke", 0, tmp_path, case=["darcy2d"], dry_run=True)
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[2] for line in lines if line.startswith("missing")]
    assert set(listed) >= {"darcy2d-fno-default-s0", "darcy2d-spectrakan-paper-s0", "darcy2d-climatology-default-s0"}
    assert "cells missing" in lines[-2]
    assert not list(tmp_path.rglob("*"))
