"""Parts of a set have the sizes asked for, are reproducible and keep time order where time runs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from spectrakan.config import as_mapping, build_settings
from spectrakan.data.split import Split, SplitSettings, split_groups, split_trajectories
from spectrakan.errors import ConfigError
from spectrakan.fields import FieldSpec, Grid, Trajectories

SINGLES = tuple((index,) for index in range(100))


def test_shares_of_distinct_samples_are_exact():
    made = split_groups(SINGLES, SplitSettings(train=0.7, validation=0.1, calibration=0.05, test=0.15))
    assert [len(made.part(name)) for name in ("train", "validation", "calibration", "test")] == [
        70,
        10,
        5,
        15,
    ]
    assert made.unused == ()


def test_the_seed_decides_and_decides_alone():
    first, again, other = (split_groups(SINGLES, SplitSettings(), seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_three_samples_still_fill_three_parts():
    made = split_groups(((0,), (1,), (2,)), SplitSettings())
    assert len(made.train) == len(made.validation) == len(made.test) == 1


def test_too_few_distinct_samples_are_refused():
    with pytest.raises(ConfigError, match="2 distinct trajectories cannot fill 3 parts"):
        split_groups(((0, 1, 2, 3), (4,)), SplitSettings())


def test_large_groups_of_copies_leave_no_part_empty():
    groups = (tuple(range(90)), (90,), (91, 92))
    made = split_groups(groups, SplitSettings())
    assert made.train
    assert made.validation
    assert made.test


def test_time_order_leaves_the_gap_between_parts():
    choices = SplitSettings(train=0.45, validation=0.05, test=0.5, by="sample_order", gap=10)
    made = split_groups(tuple((day,) for day in range(730)), choices)
    assert made.train == tuple(range(len(made.train)))
    assert made.validation[0] - made.train[-1] == 11
    assert made.test[0] - made.validation[-1] == 11
    assert made.test[-1] == 729
    assert len(made.unused) == 20
    assert len(made.test) == 355


def test_time_order_drops_the_earlier_copy_of_a_test_day():
    groups = ((0,), (1, 9), *((day,) for day in range(2, 9)))
    made = split_groups(groups, SplitSettings(train=0.5, validation=0.0, test=0.5, by="sample_order"))
    assert made.train == (0, 2, 3, 4)
    assert made.test == (5, 6, 7, 8, 9)
    assert made.unused == (1,)


def test_a_gap_larger_than_the_set_is_refused():
    with pytest.raises(ConfigError, match="too few"):
        split_groups(SINGLES[:5], SplitSettings(by="sample_order", gap=5))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"train": 0.5}, "sum to 1"),
        ({"train": 0.0, "validation": 0.5, "test": 0.5}, "train must be above 0"),
        ({"gap": 3}, "needs by=sample_order or by=time"),
    ],
)
def test_contradictions_are_refused(choices: dict[str, float], message: str):
    with pytest.raises(ConfigError, match=message):
        SplitSettings(**choices)


def test_a_record_gives_the_split_back():
    made = split_groups(SINGLES, SplitSettings(), seed=5)
    assert build_settings(Split, json.loads(json.dumps(as_mapping(made)))) == made


def test_a_damaged_record_is_refused():
    with pytest.raises(ConfigError, match="two parts"):
        build_settings(Split, {"train": [0, 1], "test": [1]})
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        build_settings(Split, {"trian": [0]}, where="split")


def test_trajectories_are_split_with_their_copies():
    values = np.random.default_rng(0).normal(size=(20, 2, 4, 1))
    values[10:] = values[:10]
    made = split_trajectories(Trajectories(values, Grid.uniform((4,)), np.arange(2.0), (FieldSpec("u"),)), seed=1)
    for part in ("train", "validation", "test"):
        members = set(made.part(part))
        assert {(index + 10) % 20 for index in members} == members


def test_a_part_of_copies_alone_is_refused():
    groups = ((0, 3), (1, 4), (2, 5))
    with pytest.raises(ConfigError, match="'train' comes again later"):
        split_groups(groups, SplitSettings(train=0.5, validation=0.0, test=0.5, by="sample_order"))


def stored(samples: int) -> Trajectories:
    values = np.arange(float(samples)).reshape(samples, 1, 1, 1)
    return Trajectories(values, Grid.uniform((1,)), np.zeros(1), (FieldSpec("u"),))


def test_no_other_split_chooses_on_the_test():
    made = split_trajectories(stored(50))
    assert not set(made.part("validation")) & set(made.part("test"))
