"""Tables from records: means, spreads, ratios, and sentences that say what the numbers say."""

from __future__ import annotations

import pytest

from experiments import ablation, appendix, derived, trials
from experiments.archive import Archive
from experiments.catalog import results_page, sections
from experiments.cells import Cell
from experiments.main import tables
from experiments.summaries import Results, beyond_spread
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
    assert marks["SpectraKAN"] == "best", "a trivial baseline takes no mark"
    assert marks["FNO"] == "second"
    standing = "- darcy2d: SpectraKAN / best baseline (FNO) = 0.500 (0.958 in the paper)"
    assert table.notes[1] == f"{standing}, ahead, but within the spread of seeds."


def test_a_claim_that_does_not_hold_is_stated(archive: Archive, keep):
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
    errors, growth = derived.resolution_tables(archive)
    assert [column.title for column in errors.columns] == ["16² (trained)", "8²", "32²"]
    grown = {row.label: row.cells for row in growth.rows}
    assert grown["SpectraKAN"][:2] == (Score(2.0), Score(1.5))
    assert grown["FNO"][0] == Score(4.0)


def test_droplets_field_by_field(archive: Archive, keep):
    at_times = {"metrics_per_field": {field: {"relative_l2": 0.3} for field in ("rho", "velocity_x", "velocity_y")}}
    fill(keep, "droplet2d", {"spectrakan": [0.1], "fno": [0.2]}, scored_times=at_times)
    scored, whole = derived.droplet_tables(archive)
    assert scored.rows[0].cells[0] == Score(0.3, None, 0.00115)
    shares = next(row for row in scored.rows if row.label == "SpectraKAN / best baseline")
    assert [cell.value for cell in shares.cells] == [1.0, 1.0, 1.0]
    assert whole.rows[1].cells[1] == Score(0.1, None, 0.0191)


def test_ablations_stand_beside_the_papers_rows(archive: Archive, keep):
    assert ablation.ABLATION.tables(archive) == []
    keep(Cell("main", "smoke", "darcy2d", "spectrakan"), 0.1)
    keep(Cell("ablation", "smoke", "darcy2d", "spectrakan", "no_gml", overrides=("model.use_gml=false",)), 0.2)
    (table,) = ablation.ABLATION.tables(archive)
    rows = {row.label: row.cells[0] for row in table.rows}
    assert rows["SpectraKAN"] == Score(0.1, None, 0.0126)
    assert rows["AMFNO + KAN, no GML"] == Score(0.2, None, 0.01327)
    assert rows["AMFNO: no token"] == Score(None, None, 0.01756)


def test_ablations_of_an_earlier_campaign_stay_readable(archive: Archive, keep):
    record = keep(Cell("ablation", "smoke", "darcy2d", "spectrakan", "no_answer_gates"), 0.2)
    record["config"] = {"model": {"answer_error": 0.0}}
    archive.keep(Cell("ablation", "smoke", "darcy2d", "spectrakan", "no_answer_gates"), record)
    (table,) = ablation.ABLATION.tables(archive)
    assert table.rows[-1].label == "no_answer_gates (spectrakan)"
    assert table.rows[-1].cells == (Score(0.2),)


def test_stability_counts_what_blew_up(archive: Archive, keep):
    long = {"at_horizon": 0.1, "at_end": 0.4, "growth": 4.0, "blown_up": 2, "num_samples": 8}
    fill(keep, "droplet2d", {"spectrakan": [0.1]}, stability=long)
    (table,) = derived.stability_tables(archive)
    assert table.rows[0].cells == (Score(0.1), Score(0.4), Score(4.0), "2 of 8")


def test_trials_are_named_by_their_overrides_or_label(archive: Archive, keep):
    for label, overrides in (("wide", ("model.width=9",)), ("old", ())):
        cell = Cell("search", "smoke", "darcy2d", "fno", overrides=overrides, label=label, test=False)
        keep(cell, None, validation=0.3, **({"overrides": list(overrides)} if overrides else {}))
    (table,) = trials.tables(archive)
    assert [row.label for row in table.rows] == ["FNO: old", "FNO: model.width=9"]
    assert table.rows[0].cells == ("10", Score(0.3), Score(30.0), "1,000")


def test_the_page_holds_what_there_is_and_the_papers_slips(archive: Archive, keep):
    fill(keep, "darcy2d", {"spectrakan": [0.1], "fno": [0.2]})
    titles = [section.title for section in sections(archive)]
    assert titles[0] == "Main table"
    assert "Falling droplet" not in titles
    page = results_page(archive)
    assert "from 2 records" in page
    assert "| FNO | *0.2* (0.02575) |" in page
    assert "50.7 %" in page
