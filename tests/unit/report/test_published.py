"""The paper's numbers, as they stand in its tables."""

from __future__ import annotations

from spectrakan.data.problems import PROBLEMS
from spectrakan.report.published import paper_score, published


def test_the_tables_are_whole():
    main = [entry for entry in published() if entry.table == "main"]
    assert {entry.task for entry in main} == set(PROBLEMS) - {"droplet2d"}
    assert len([entry for entry in published() if entry.table == "droplet"]) == 21
    assert len({(e.table, e.task, e.metric, e.detail, e.method) for e in published()}) == len(published())


def test_scores_are_found_in_both_tables_or_not_at_all():
    assert paper_score("darcy2d", "rmse", "spectrakan") == 0.0126
    assert paper_score("darcy2d", "nrmse", "spectrakan") == 0.06304
    assert paper_score("droplet2d", "rmse", "spectrakan") is None
    assert paper_score("cns1d", "rmse", "local_fno") is None
