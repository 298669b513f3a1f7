"""Settings: where they come from, that they feed back, and how mistakes are reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spectrakan.config import as_mapping, parse_yaml, to_yaml
from spectrakan.data.files import write_dataset
from spectrakan.data.problems import PROBLEMS
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories
from spectrakan.models.catalog import MODELS
from spectrakan.training import explained, resolve


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("model", MODELS)
def test_resolved_settings_feed_back_unchanged(problem, model):
    config = resolve(problem, [f"model.name={model}", "runtime.seed=3"]).config
    assert resolve(parse_yaml(to_yaml(as_mapping(config)))).config == config
    assert resolve(parse_yaml(explained(config))).config == config


def test_every_setting_is_explained_above_its_line():
    lines = explained(resolve("darcy2d").config).splitlines()
    for index, line in enumerate(lines):
        if line.strip().startswith("#") or line.strip().startswith("-") or line.endswith(":"):
            continue
        assert lines[index - 1].strip().startswith("#"), line
    assert any("Channels" in line for line in lines)


def test_preset_then_file_then_override(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("task: cns1d\nbudget: paper\ntraining: {epochs: 7}\n")
    config = resolve(path, ["training.learning_rate=5e-4"]).config
    assert (config.training.epochs, config.training.learning_rate, config.training.batch_size) == (7, 5e-4, 16)
    assert (config.training.horizon, config.training.validate_epochs, config.data.num_samples) == (11, 5, 10_000)


def own(samples: int = 20, frames: int = 9) -> Trajectories:
    values = np.random.default_rng(0).random((samples, frames, 16, 1))
    return Trajectories.from_arrays(values, ("u",), boundary=("periodic",), name="my problem!")


def test_data_pose_their_own_problem_and_epochs_follow_from_its_windows(tmp_path: Path):
    data = own()
    found = resolve(data=data)
    assert (found.config.task, found.problem.history, found.problem.horizon) == ("my_problem", 2, 7)
    windows = int(20 * 0.8) * 7
    assert found.config.training.epochs == round(1000 * 32 / windows)
    longer = resolve(None, ["budget=long"], data=data).config.training.epochs
    assert longer == round(10_000 * 32 / windows)
    path = write_dataset(tmp_path / "some file.h5", data)
    named = resolve(None, [f"data.path='{path}'", "task=heat"])
    assert (named.config.task, named.config.data.path) == ("heat", str(path))
    again = resolve(as_mapping(named.config))
    assert again.config == named.config


def test_a_known_problem_is_recognised_by_the_name_in_its_file(tmp_path: Path):
    from spectrakan.data.generate import generate

    path = write_dataset(tmp_path / "d.h5", generate("darcy2d", 12, 8))
    found = resolve(None, [f"data.path={path}"])
    assert found.problem is PROBLEMS["darcy2d"]
    assert found.config.training.batch_size == 4
    assert found.config.training.epochs == round(1000 * 4 / 10)
    with pytest.raises(ConfigError, match="holds darcy2d, not cns1d"):
        resolve("cns1d", [f"data.path={path}"])
    with pytest.raises(ConfigError, match="leave the problem's name out"):
        resolve("cns1d", data=own())


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
        ("darcy2d", ["budget=best"], "unknown budget 'best'"),
        ("darcy2d", ["training.horizon=3"], "one_step unrolls 1 frame"),
        ("darcy2d", ["training.learning_rate=.nan"], "not a finite number"),
        ("darcy2d", ["data.split.gap=3"], "gap=3 needs by=sample_order or by=time"),
        ({"training": {}}, [], "name a problem, or give data"),
        ("nowhere.yaml", [], "cannot read settings"),
    ],
)
def test_mistakes_are_reported_with_what_to_do(source, overrides, told):
    with pytest.raises(ConfigError, match=told.replace(".", r"\.")):
        resolve(source, overrides)


def test_asking_for_samples_or_cells_replaces_the_plan_of_both():
    plan = resolve("shallow_water2d").config.data
    assert (plan.num_samples, plan.test_samples, plan.resolution, plan.solved_at) == (200, 50, 64, 128)
    few = resolve("shallow_water2d", ["data.num_samples=8", "data.resolution=16"]).config.data
    assert (few.test_samples, few.solved_at) == (0, None)
    both = resolve("shallow_water2d", ["data.num_samples=8", "data.test_samples=2"]).config.data
    assert (both.num_samples, both.test_samples, both.solved_at) == (8, 2, 128)
