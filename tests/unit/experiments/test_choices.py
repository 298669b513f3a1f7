"""What a campaign decides on the way: rates and rivals, by validation scores alone."""

from __future__ import annotations

from dataclasses import replace

from spectrakan.config import as_mapping
from spectrakan.experiments import main
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import sort_out
from spectrakan.experiments.cells import Cell, comparable, record_key, run_settings
from spectrakan.experiments.learning_rates import chosen_rate, rate_cells, rate_choice
from spectrakan.experiments.scales import SCALES
from spectrakan.runs import RunFolder


def test_the_rate_with_the_smallest_validation_error_is_chosen(archive: Archive, keep):
    scale = SCALES["smoke"]
    assert chosen_rate(archive, "darcy2d", "fno") is None, "no trials yet"
    assert rate_choice(archive, "darcy2d", "fno") == ("training.learning_rate=0.002",)
    first, second = [cell for cell in rate_cells(scale, [("fno", "default")]) if cell.case == "darcy2d"]
    keep(first, None, validation=0.5)
    assert chosen_rate(archive, "darcy2d", "fno") is None, "half of the trials decide nothing"
    keep(second, None, validation=0.2)
    assert chosen_rate(archive, "darcy2d", "fno") == scale.rates[1]
    assert chosen_rate(archive, "shallow_water2d", "fno") == scale.rates[1], "once for all tasks with two axes"
    assert chosen_rate(archive, "cns1d", "fno") is None
    keep(second, None, validation=float("nan"))
    assert chosen_rate(archive, "darcy2d", "fno") == scale.rates[0], "what diverged is not chosen"


def test_rivals_are_chosen_by_validation_not_by_test(tmp_path, keep, archive):
    small = Archive(archive.results, archive.cache, "small")
    errors = {"unet": (0.1, 0.9), "fno": (0.2, 0.3), "ffno": (0.3, 0.2), "lno": (0.4, 0.8)}
    for model, (test, validation) in errors.items():
        keep(Cell("main", "small", "darcy2d", model), test, validation=validation)
    assert main.strongest(small, "darcy2d") == ["ffno", "fno"]
    seeds = [(cell.model, cell.seed) for cell in main.further_seeds(small, "darcy2d")]
    assert seeds == [(model, seed) for seed in (1, 2) for model in ("spectrakan", "ffno", "fno")]


def test_a_record_of_other_settings_is_told_apart(archive: Archive, keep):
    cell = Cell("main", "smoke", "darcy2d", "fno")
    keep(cell, 0.1)
    outcome, missing = sort_out([cell, cell], archive)
    assert (outcome.found, missing) == ([cell.name], [])
    wider = Cell("main", "smoke", "darcy2d", "fno", choices=("model.width=9",))
    assert archive.changed(wider) == ["model.width"]
    outcome, missing = sort_out([wider], archive)
    assert (outcome.changed, missing) == ([cell.name], [])
    assert sort_out([wider], archive, refresh=True)[1] == [wider]


def test_a_setting_younger_than_the_record_changes_it_only_where_it_is_asked_for(archive: Archive, keep):
    cell = Cell("main", "smoke", "darcy2d", "spectrakan")
    record = keep(cell, 0.1)
    del record["config"]["model"]["coarser_cells"]
    archive.keep(cell, record)
    assert archive.changed(cell) == []
    asked = Cell("main", "smoke", "darcy2d", "spectrakan", choices=("model.coarser_cells=refine",))
    assert archive.changed(asked) == ["model.coarser_cells"]


def test_persistence_needs_time(archive: Archive):
    steady, evolving = ([cell.model for cell in main.first_seeds(archive, case)] for case in ("darcy2d", "droplet2d"))
    assert "persistence" not in steady
    assert "persistence" in evolving


def test_weights_trained_before_a_setting_existed_are_found_again(archive: Archive):
    cell = Cell("main", "smoke", "cns1d", "fno")
    choices = run_settings(cell, "train.h5")
    old = as_mapping(choices)
    del old["model"]["answer_error"]
    folder = RunFolder(archive.cache / "runs" / "smoke" / "main" / f"{cell.name}-{record_key(comparable(old))}")
    folder.create()
    folder.write_config(old)
    assert archive.run_folder(cell, choices).path != folder.path  # begun, not finished
    folder.record.write_text("{}")
    assert archive.run_folder(cell, choices).path == folder.path
    gated = run_settings(replace(cell, choices=("model.answer_error=0.1",)), "train.h5")
    assert archive.run_folder(cell, gated).path != folder.path
