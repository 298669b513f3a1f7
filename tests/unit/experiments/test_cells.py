"""Cells: names, configs, and the rules of a fair comparison, for every scale, case and model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell, comparable, record_key, run_settings
from spectrakan.experiments.learning_rates import rate_cells
from spectrakan.experiments.main import competitors, first_seeds
from spectrakan.experiments.scales import BASELINES, SCALES, TRAIN_SEED, scale_named
from spectrakan.experiments.sizes import SIZES
from spectrakan.models import MODELS


def key_of(cell: Cell, path: str) -> str:
    return record_key(comparable(as_mapping(run_settings(cell, path))))


EVERY = [(scale, case) for scale in SCALES for case in SCALES[scale].cases]


def test_a_cell_survives_json_and_names_its_file():
    cell = Cell("search", "small", "cns1d", "fno", "default", 2, ("model.width=8",), "wide", test=False)
    assert Cell.from_json(cell.to_json()) == cell
    assert str(cell.file) == "small/search/cns1d-fno-default-s2-wide.json"
    with pytest.raises(ConfigError, match="cannot be part of a file name"):
        replace(cell, label="../up")


@pytest.mark.parametrize(("scale", "case"), EVERY)
def test_all_models_of_a_case_get_the_same_data_and_recipe(scale: str, case: str, tmp_path):
    cells = first_seeds(Archive(tmp_path, tmp_path, scale), case)
    configs = [as_mapping(run_settings(cell, "data.h5")) for cell in cells]
    assert len({cell.model for cell in cells}) >= 3
    for config in configs:
        config["training"].pop("learning_rate")
        config.pop("model")
    assert all(config == configs[0] for config in configs), "data, split, recipe, steps and seed are the same"


@pytest.mark.parametrize("scale", SCALES)
def test_every_model_tries_the_same_rates_on_validation_data(scale: str):
    chosen = scale_named(scale)
    cells = rate_cells(chosen, competitors(chosen))
    for competitor in competitors(chosen):
        mine = [cell for cell in cells if (cell.model, cell.variant) == competitor]
        assert len(mine) == len(chosen.rates) * len(chosen.rate_cases)
        assert not any(cell.test for cell in mine)
    rates = {cell.label for cell in cells}
    assert len(rates) == len(chosen.rates)


def test_small_is_what_was_promised():
    cases = SCALES["small"].cases
    sizes = {name: (case.num_samples, case.resolution, case.frames) for name, case in cases.items()}
    assert sizes["darcy2d"] == (1000, 64, None)
    assert sizes["shallow_water2d"] == (200, 64, 21)
    assert sizes["droplet2d"] == (300, 32, 20)
    assert sizes["cns1d"] == (500, 128, 21)
    assert sizes["diffusion_reaction1d"] == (500, 256, 21)
    assert all(case.training["horizon"] <= 4 for case in cases.values()), "training unrolls at most 4 steps"
    assert len(SCALES["small"].rates) == 3
    assert SCALES["small"].baselines == BASELINES
    assert len(BASELINES) == 8
    assert SCALES["small"].seeds == (0, 1, 2)


def test_the_test_seed_is_reserved():
    assert all(case.test_seed != TRAIN_SEED for scale in SCALES.values() for case in scale.cases.values())
    for scale, case in EVERY:
        config = run_settings(Cell("main", scale, case, "fno"), None)
        assert config.data.seed == TRAIN_SEED
        assert config.data.split is not None
        assert config.data.split.test == 0.0, "the test is no part of what training sees"


def test_every_competitor_has_a_size_with_a_reason():
    for model in ("spectrakan", *BASELINES):
        assert model in MODELS
        assert SIZES[model].reason
    for case in SCALES["small"].cases:
        for model in BASELINES:
            run_settings(Cell("main", "small", case, model), None)


def test_the_key_of_a_config_follows_every_choice_but_the_folder():
    cell = Cell("main", "smoke", "darcy2d", "fno")
    key = key_of(cell, "here/d.h5")
    assert key == key_of(cell, "there/d.h5")
    assert key != key_of(replace(cell, choices=("model.width=9",)), "here/d.h5")
    assert comparable(as_mapping(run_settings(cell, "/a/b/d.h5")))["data"]["path"] == "d.h5"


def test_an_ablation_starts_from_the_default():
    config = run_settings(
        Cell("ablation", "small", "darcy2d", "spectrakan", "no_gml", 0, ("model.use_gml=false",)), None
    )
    assert config.model["variant"] == "default"
    assert config.model["use_gml"] is False
