"""What a campaign decides on the way, by validation scores alone: learning rates and the strongest baselines."""

from __future__ import annotations

import math

from experiments import learning_rates, main
from experiments.archive import Archive
from experiments.campaign import sort_out
from experiments.cells import Cell
from experiments.learning_rates import best_rate, next_rate, tried_rates
from experiments.scales import SCALES


def test_a_bracket_grows_until_its_best_rate_is_inside(archive: Archive, keep):
    scale = SCALES["smoke"]
    first, *further = learning_rates.stages(scale, {"darcy2d": [("fno", "default")]})
    mine = [cell for cell in first(archive) if cell.case == "darcy2d"]
    assert [cell.label for cell in mine] == ["lr0.001", "lr0.004"]
    assert all(cell.overrides[1] == "training.epochs=1" for cell in mine), "half of the preset's two epochs"
    assert further[0](archive) == [], "nothing is extended before anything was tried"
    keep(mine[0], None, validation=0.5)
    keep(mine[1], None, validation=0.2)
    (above,) = further[0](archive)
    assert above.label == "lr0.01"
    keep(above, None, validation=0.3)
    assert further[1](archive) == []
    tried = tried_rates(archive)["darcy2d", "fno", "default"]
    assert tried == {0.001: 0.5, 0.004: 0.2, 0.01: 0.3}
    assert best_rate(tried) == 0.004
    (table,) = learning_rates.tables(archive)
    assert table.rows[0].cells == ("0.004 (0.001 to 0.01)",)


def test_a_rate_that_diverged_is_never_the_best():
    assert best_rate({1e-3: 0.4, 3e-3: math.inf}) == 1e-3
    assert next_rate({1e-3: 0.4, 3e-3: math.inf}) == 3e-4
    assert best_rate({1e-2: math.inf}) is None
    assert next_rate({1e-2: math.inf}) == 3e-3, "smaller rates are tried where every one diverged"


def test_the_strongest_baselines_are_chosen_by_validation_not_by_test(keep, archive):
    short = Archive(archive.results, archive.cache, "short")
    errors = {"unet": (0.1, 0.9), "fno": (0.2, 0.3), "ffno": (0.3, 0.2), "lno": (0.4, 0.8)}
    for model, (test, validation) in errors.items():
        keep(Cell("main", "short", "darcy2d", model), test, validation=validation)
    assert main.strongest(short, "darcy2d") == ["ffno"]
    seeds = [(cell.model, cell.seed) for cell in main.further_seeds(short, "darcy2d")]
    assert seeds == [(model, seed) for seed in (1, 2, 3, 4) for model in ("spectrakan", "ffno")]


def test_a_record_of_other_settings_is_found_out(archive: Archive, keep):
    cell = Cell("main", "smoke", "darcy2d", "fno")
    keep(cell, 0.1)
    outcome, missing = sort_out([cell, cell], archive)
    assert (outcome.found, missing) == ([cell.name], [])
    wider = Cell("main", "smoke", "darcy2d", "fno", overrides=("model.width=9",))
    assert archive.changed(wider) == ["model.width"]
    outcome, missing = sort_out([wider], archive)
    assert (outcome.changed, missing) == ([cell.name], [])
    assert sort_out([wider], archive, refresh=True)[1] == [wider]


def test_a_record_whose_settings_no_longer_exist_counts_as_changed(archive: Archive, keep):
    cell = Cell("main", "smoke", "darcy2d", "spectrakan")
    record = keep(cell, 0.1)
    record["config"]["model"]["answer_error"] = 0.1
    del record["config"]["training"]["clip_norm"]
    archive.keep(cell, record)
    assert archive.changed(cell) == ["model.answer_error", "training.clip_norm"]


def test_persistence_needs_time(archive: Archive):
    steady, evolving = ([cell.model for cell in main.first_seeds(archive, case)] for case in ("darcy2d", "droplet2d"))
    assert "persistence" not in steady
    assert "persistence" in evolving
