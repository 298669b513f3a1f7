"""The paper's numbers, as they stand in its tables."""

from __future__ import annotations

from spectrakan.data.catalog import TASKS
from spectrakan.report.published import (
    appendix_wins,
    best_baseline,
    paper_cell,
    paper_ratio,
    paper_score,
    paper_slips,
    published,
)


def test_the_tables_are_whole():
    main = [entry for entry in published() if entry.table == "main"]
    assert {entry.task for entry in main} == set(TASKS) - {"droplet2d"}
    assert len([entry for entry in published() if entry.table == "droplet"]) == 21
    assert len({(e.table, e.task, e.metric, e.detail, e.method) for e in published()}) == len(published())


def test_ratios_to_the_best_baseline():
    expected = {"cns1d": 0.493, "diffusion_reaction1d": 0.586, "darcy2d": 0.958, "shallow_water2d": 0.548,
                "climate2d": 0.637}  # fmt: skip
    assert {task: round(paper_ratio(paper_cell("main", task, "rmse")) or 0, 3) for task in expected} == expected
    droplet = [
        round(paper_ratio(paper_cell("droplet", "droplet2d", "relative_l2", f)) or 0, 3) for f in ("rho", "u", "v")
    ]
    assert droplet == [0.596, 0.597, 0.708]
    assert best_baseline(paper_cell("main", "diffusion_reaction1d", "rmse")) == ("cvit", 0.00678)


def test_scores_are_found_in_both_tables_or_not_at_all():
    assert paper_score("darcy2d", "rmse", "spectrakan") == 0.0126
    assert paper_score("darcy2d", "nrmse", "spectrakan") == 0.06304
    assert paper_score("droplet2d", "rmse", "spectrakan") is None
    assert paper_score("cns1d", "rmse", "local_fno") is None


def test_its_slips_follow_from_its_numbers():
    assert appendix_wins() == (20, 28)
    first, second, third = paper_slips()
    assert "50.7 %" in first
    assert "41.4 %" in second
    assert "wins 20 of the 28" in third
