"""Tables from records: means, spreads, ratios, and sentences that say what the numbers say."""

from __future__ import annotations

import pytest

from spectrakan.experiments import ablation, appendix, costs, droplet, scorecard, stability, super_resolution
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell
from spectrakan.experiments.document import results_page, sections
from spectrakan.experiments.main import tables
from spectrakan.experiments.summaries import Results, beyond_spread
from spectrakan.report.table import Score


def fill(keep, case: str, errors: dict[str, list[float]], **details) -> None:
    for model, values in errors.items():
        for seed, value in enumerate(values):
            keep(Cell("main", "smoke", case, model, seed=seed), value, **details)


def test_the_main_table_has_means_spreads_ratios_and_the_papers_numbers(archive: Archive, keep):
    fill(keep, "darcy2d", {"spectrakan": [0.02, 0.04], "fno": [0.04, 0.08], "unet": [0.065], "climatology": [0.001]})
    (table,) = tables(archive)
    rows = {row.label: row.cells[0] for row in table.rows}
    ours, share = rows["SpectraKAN"], rows["SpectraKAN / best baseline"]
    assert isinstance(ours, Score)
    assert isinstance(share, Score)
    assert (ours.value, ours.spread, ours.paper) == (pytest.approx(0.03), pytest.approx(0.0141421, 1e-5), 0.0126)
    assert rows["U-Net"] == Score(0.065, None, 0.01315)
    assert (share.value, share.paper) == (pytest.approx(0.5), pytest.approx(0.0126 / 0.01315))
    assert rows["improvement"] == "50.0 % (4.2 %)"
    marks = {row.label: table.mark(place, 0) for place, row in enumerate(table.rows)}
    assert marks["SpectraKAN"] == "best", "a floor takes no mark"
    assert marks["FNO"] == "second"
    standing = "- darcy2d: SpectraKAN / best baseline (FNO) = 0.500 (0.958 in the paper)"
    assert table.notes[1] == f"{standing}, ahead, but within the spread of seeds."


def test_a_claim_that_does_not_hold_is_said_to_fail(archive: Archive, keep):
    fill(keep, "shallow_water2d", {"spectrakan": [0.05], "fno": [0.02], "local_fno": [0.01]})
    (table,) = tables(archive)
    assert "= 5.000 (0.548 in the paper)" in table.notes[1]
    assert "The paper's claim to be ahead does not hold in our hands: LocalFNO is better." in table.notes[1]


def test_a_seed_that_failed_leaves_no_mean(archive: Archive, keep):
    fill(keep, "darcy2d", {"fno": [0.1]})
    keep(Cell("main", "smoke", "darcy2d", "fno", seed=1), None)
    result = Results.of(archive, "main").find("darcy2d", "fno")
    assert result is not None
    assert result.metric("rmse").value is None


def test_spreads_together():
    assert beyond_spread(Score(1.0, 0.3), Score(2.0, 0.4))
    assert not beyond_spread(Score(1.0, 0.6), Score(2.0, 0.9))
    assert beyond_spread(Score(1.0), Score(1.1))
    assert not beyond_spread(Score(None), Score(1.0))


def test_the_appendix_counts_its_wins(archive: Archive, keep):
    fill(keep, "darcy2d", {"spectrakan": [0.2], "fno": [0.1]})
    fill(keep, "cns1d", {"spectrakan": [0.1], "fno": [0.2]})
    told = appendix.summary(archive)
    assert told is not None
    assert told.startswith("SpectraKAN has the smallest error in 7 of 14 columns of the appendix")
    assert "in 20 of 28" in told
    assert "darcy2d nrmse (fno)" in told
    assert len(appendix.tables(archive)) == 7


def test_other_resolutions_give_growth(archive: Archive, keep):
    far = {"8": {"metrics": {"rmse": 0.04}}, "32": {"metrics": {"rmse": 0.03}}}
    fill(keep, "shallow_water2d", {"spectrakan": [0.02], "fno": [0.01]}, resolutions=far)
    errors, growth = super_resolution.tables(archive)
    assert [column.title for column in errors.columns] == ["16² (trained)", "8²", "32²"]
    grown = {row.label: row.cells for row in growth.rows}
    assert grown["SpectraKAN"][:2] == (Score(2.0), Score(1.5))
    assert grown["FNO"][0] == Score(4.0)


def test_droplets_field_by_field(archive: Archive, keep):
    at_times = {"metrics_per_field": {field: {"relative_l2": 0.3} for field in ("rho", "velocity_x", "velocity_y")}}
    fill(keep, "droplet2d", {"spectrakan": [0.1], "fno": [0.2]}, scored_times=at_times)
    scored, whole = droplet.tables(archive)
    assert scored.rows[0].cells[0] == Score(0.3, None, 0.00115)
    assert [each.ratio for each in droplet.verdicts(archive)] == [1.0, 1.0, 1.0]
    assert whole.rows[1].cells[1] == Score(0.1, None, 0.0191)


def test_ablations_stand_beside_the_papers_rows(archive: Archive, keep):
    assert ablation.ABLATION.tables(archive) == []
    keep(Cell("main", "smoke", "darcy2d", "spectrakan"), 0.1)
    keep(Cell("ablation", "smoke", "darcy2d", "spectrakan", "no_gml", choices=("model.use_gml=false",)), 0.2)
    (table,) = ablation.ABLATION.tables(archive)
    rows = {row.label: row.cells[0] for row in table.rows}
    assert rows["SpectraKAN"] == Score(0.1, None, 0.0126)
    assert rows["AMFNO + KAN, no GML"] == Score(0.2, None, 0.01327)
    assert rows["AMFNO: no token"] == Score(None, None, 0.01756)


def test_costs_are_beside_fnos(archive: Archive, keep):
    fill(keep, "darcy2d", {"spectrakan": [0.1], "fno": [0.2]})
    (table,) = costs.tables(archive)
    rows = {row.label: row.cells for row in table.rows}
    assert rows["SpectraKAN"][1:3] == (Score(40.0), Score(40.0 / 30.0))
    assert rows["FNO"][2] == Score(1.0)


def test_stability_counts_what_blew_up(archive: Archive, keep):
    long = {"at_horizon": 0.1, "at_end": 0.4, "growth": 4.0, "blown_up": 2, "num_samples": 8}
    fill(keep, "droplet2d", {"spectrakan": [0.1]}, stability=long)
    (table,) = stability.tables(archive)
    assert table.rows[0].cells == (Score(0.1), Score(0.4), Score(4.0), "2 of 8")


def test_the_scorecard_follows_from_the_records(archive: Archive, keep):
    fill(keep, "darcy2d", {"spectrakan": [0.1], "fno": [0.2], "climatology": [0.3]})
    told = {bar.name: bar for bar in scorecard.bars(archive)}
    assert told["Goal: ratio to the best baseline on darcy2d at most the paper's 0.958"].reached is True
    assert told["FNO's RMSE on darcy2d at most 0.5 of climatology's"].reached is False
    assert told["Training seconds on darcy2d at most 1.5 times FNO's"].found == "1.33"
    assert told["At least 20 of the 28 appendix columns won"].reached is None


def test_the_page_holds_what_there_is_and_the_papers_slips(archive: Archive, keep):
    fill(keep, "darcy2d", {"spectrakan": [0.1], "fno": [0.2]})
    titles = [section.title for section in sections(archive)]
    assert titles[0] == "What had to be shown"
    assert "Falling droplet" not in titles
    page = results_page(archive)
    assert "from 2 records" in page
    assert "| FNO | *0.2* (0.02575) |" in page
    assert "50.7 %" in page
