"""Cells: names, configs, and the rules of a fair comparison, for every scale, case and model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.archive import Archive
from experiments.cells import Cell, case_settings, comparable, record_key, run_settings
from experiments.learning_rates import stages as rate_stages
from experiments.main import competitors, first_seeds
from experiments.scales import BASELINES, DEVELOPMENT_SEED, SCALES, TEST_SEED, scale_named
from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError


def key_of(cell: Cell, path: str) -> str:
    return record_key(comparable(as_mapping(run_settings(cell, path))))


EVERY = [(scale, case) for scale in SCALES for case in SCALES[scale].cases]


def test_a_cell_survives_json_and_names_its_file():
    cell = Cell("search", "short", "cns1d", "fno", "default", 2, ("model.width=8",), "wide", test=False)
    assert Cell.from_json(cell.to_json()) == cell
    assert str(cell.file) == "short/search/cns1d-fno-default-s2-wide.json"
    with pytest.raises(ConfigError, match="cannot be part of a file name"):
        replace(cell, label="../up")


@pytest.mark.parametrize(("scale", "case"), EVERY)
def test_all_models_of_a_case_get_the_same_data_and_training(scale: str, case: str, tmp_path):
    cells = first_seeds(Archive(tmp_path, tmp_path, scale), case)
    configs = [as_mapping(run_settings(cell, "data.h5")) for cell in cells]
    assert len({cell.model for cell in cells}) >= 3
    for config in configs:
        config["training"].pop("learning_rate")
        config.pop("model")
    assert all(config == configs[0] for config in configs), "data, split, training, steps and seed are the same"


@pytest.mark.parametrize("scale", SCALES)
def test_every_model_tries_the_same_rates_on_validation_data(scale: str, tmp_path):
    chosen = scale_named(scale)
    cells = rate_stages(chosen, {case: competitors(chosen) for case in chosen.main_cases})[0](
        Archive(tmp_path, tmp_path, scale)
    )
    for competitor in competitors(chosen):
        mine = [cell for cell in cells if (cell.model, cell.variant) == competitor]
        assert len(mine) == len(chosen.rates) * len(chosen.main_cases)
        assert not any(cell.test for cell in mine)
    assert len({cell.label for cell in cells}) == len(chosen.rates)


def test_eight_baselines_compete_with_five_seeds():
    assert len(BASELINES) == 8
    for scale in ("short", "long", "paper"):
        assert SCALES[scale].baselines == BASELINES
        assert SCALES[scale].seeds == tuple(range(3 if scale == "paper" else 5))
    assert len(SCALES["short"].rates) == 3
    epochs = [run_settings(Cell("main", scale, "cns1d", "fno")).training.epochs for scale in ("short", "long")]
    assert epochs[1] == 10 * epochs[0]


def test_training_never_has_the_test_samples():
    assert len({TEST_SEED, DEVELOPMENT_SEED}) == 2
    for scale, case in EVERY:
        data = run_settings(Cell("main", scale, case, "fno")).data
        assert data.seed not in {TEST_SEED, DEVELOPMENT_SEED}
        assert data.split is not None
        assert (data.split.test, data.test_samples) == (0.0, 0), "the test is no part of what training reads"
        assert data.test_path is None


def test_three_fields_are_one_override():
    one, three = (run_settings(Cell("main", "short", case, "fno")) for case in EVERY_WATER)
    assert (one.data.fields, three.data.fields) == (("height",), ())
    assert replace(one, data=replace(one.data, fields=())) == three
    assert case_settings("short", EVERY_WATER[1]).data.fields == ()


EVERY_WATER = ("shallow_water2d", "shallow_water2d_fields")


def test_the_key_of_a_config_follows_every_setting_but_the_file():
    cell = Cell("main", "smoke", "darcy2d", "fno")
    key = key_of(cell, "here/d.h5")
    assert key == key_of(cell, "there/e.h5")
    assert key != key_of(replace(cell, overrides=("model.width=9",)), "here/d.h5")
    assert comparable(as_mapping(run_settings(cell, "/a/b/d.h5")))["data"]["path"] is None


def test_an_ablation_starts_from_the_default():
    cell = Cell("ablation", "short", "darcy2d", "spectrakan", "no_gml", 0, ("model.use_gml=false",))
    config, default = run_settings(cell), run_settings(Cell("main", "short", "darcy2d", "spectrakan"))
    assert config.model["variant"] == "default"
    assert config.model == {**default.model, "use_gml": False}
    paper = run_settings(Cell("main", "short", "darcy2d", "spectrakan", "paper"))
    assert paper.model["variant"] == "paper"
    assert paper.model["block"] == "plain"


def test_a_setting_that_a_model_lacks_is_an_error():
    with pytest.raises(ConfigError, match="paddding"):
        run_settings(Cell("search", "smoke", "darcy2d", "fno", overrides=("model.paddding=3",)))
