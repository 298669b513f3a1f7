"""The paper's claims against its own numbers."""

from __future__ import annotations

from experiments.appendix import appendix_wins, paper_slips
from experiments.standings import best_baseline, paper_ratio
from spectrakan.report.published import paper_cell


def test_ratios_to_the_best_baseline():
    expected = {"cns1d": 0.493, "diffusion_reaction1d": 0.586, "darcy2d": 0.958, "shallow_water2d": 0.548,
                "climate2d": 0.637}  # fmt: skip
    assert {task: round(paper_ratio(paper_cell("main", task, "rmse")) or 0, 3) for task in expected} == expected
    droplet = [
        round(paper_ratio(paper_cell("droplet", "droplet2d", "relative_l2", f)) or 0, 3) for f in ("rho", "u", "v")
    ]
    assert droplet == [0.596, 0.597, 0.708]
    assert best_baseline(paper_cell("main", "diffusion_reaction1d", "rmse")) == ("cvit", 0.00678)


def test_its_slips_follow_from_its_numbers():
    assert appendix_wins() == (20, 28)
    first, second, third = paper_slips()
    assert "50.7 %" in first
    assert "41.4 %" in second
    assert "wins 20 of the 28" in third
