"""Settings: where they come from, that they feed back, and how mistakes are told."""

from __future__ import annotations

import pytest

from spectrakan.config import as_mapping, parse_yaml, to_yaml
from spectrakan.data.catalog import TASKS
from spectrakan.errors import ConfigError
from spectrakan.models.catalog import MODELS
from spectrakan.training.settings import resolve


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", MODELS)
def test_resolved_settings_feed_back_unchanged(task, model):
    chosen = resolve(task, [f"model.name={model}", "runtime.seed=3"])
    text = to_yaml(as_mapping(chosen))
    assert resolve(parse_yaml(text)) == chosen


def test_recipe_then_file_then_override(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("task: cns1d\ntraining: {epochs: 7, recipe: pdebench}\n")
    chosen = resolve(path, ["training.learning_rate=5e-4"])
    assert (chosen.training.epochs, chosen.training.learning_rate, chosen.training.batch_size) == (7, 5e-4, 100)
    assert (chosen.training.schedule, chosen.training.optimizer, chosen.training.normalize) == ("step", "adam", False)
    assert (chosen.model["predict"], chosen.data.history) == ("direct", 10)


@pytest.mark.parametrize(
    ("source", "overrides", "told"),
    [
        ("darcy", [], "did you mean 'darcy2d'"),
        ("darcy2d", ["training.epoch=2"], "unknown key 'training.epoch'; did you mean 'epochs'"),
        ("darcy2d", ["trainin.epochs=2"], "did you mean 'training'"),
        ("darcy2d", ["model.widht=2"], "did you mean 'width'"),
        ("darcy2d", ["model.name=spectrakan2"], "did you mean 'spectrakan'"),
        ("darcy2d", ["model.variant=papr"], "did you mean 'paper'"),
        ("darcy2d", ["training.epochs=many"], "training.epochs"),
        ("darcy2d", ["training.epochs=0"], "training.epochs"),
        ("darcy2d", ["training=5"], "'training' must be a group"),
        ("darcy2d", ["training.recipe=best"], "unknown recipe 'best'"),
        ("climate2d", ["training.recipe=pdebench"], "PDEBench has no task 'climate2d'"),
        ("darcy2d", ["training.horizon=3"], "one_step unrolls 1 frame"),
        ("darcy2d", ["training.learning_rate=.nan"], "not a finite number"),
        ({"training": {}}, [], "key 'task' is missing"),
        ("nowhere.yaml", [], "cannot read settings"),
    ],
)
def test_mistakes_are_told_with_what_to_do(source, overrides, told):
    with pytest.raises(ConfigError, match=told.replace(".", r"\.")):
        resolve(source, overrides)
