"""Trials on development samples as a table: means, the best unconditioned rival, tests where seeds allow them."""

from __future__ import annotations

import pytest

from experiments import conditioning
from experiments.archive import Archive
from experiments.cells import Cell


def test_trials_are_compared_with_the_best_unconditioned_model(archive: Archive, keep):
    short = Archive(archive.results, archive.cache, "short")
    errors = {
        ("spectrakan", "default", "conditioned"): (0.10, 0.11, 0.10),
        ("spectrakan", "default", "no_token"): (0.30, 0.31, 0.32),
        ("ffno", "default", "default"): (0.20, 0.22, 0.21),
        ("ffno", "default", "rate_0.003"): (0.05,),
    }
    for (model, variant, label), values in errors.items():
        for seed, value in enumerate(values):
            cell = Cell("search", "short", "burgers1d_hidden", model, variant, seed, (), label, test=False)
            keep(cell, value, development={"rmse": value})
    keep(Cell("search", "short", "cns1d", "ffno", label="default", test=False), 1.0, development={"rmse": 1.0})
    (found,) = conditioning.findings(short)
    assert found.best == ("ffno", "default", "default")
    assert found.ratio == pytest.approx(0.31 / 0.63)
    assert found.compared is not None
    assert found.compared.verdict == "wins"
    (row,) = conditioning.table(short).rows
    assert row.cells[:3] == ("0.103 (3)", "0.31 (3)", "0.21 (3)")
    assert row.cells[-2] == "0.49"
