"""Settings: strict, plain, and able to say what was meant."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.config import apply_overrides, as_mapping, build_settings, parse_yaml, read_yaml, settings, to_yaml
from spectrakan.errors import ConfigError


@settings
class Inner:
    """Settings inside settings."""

    rate: float = 1e-3
    """How fast."""
    sizes: tuple[int, ...] = (1, 2)
    """How many."""


@settings
class Outer:
    """Settings with settings inside."""

    name: str
    """What it is called."""
    deep: bool = False
    """Whether it is deep."""
    inner: Inner = dataclasses.field(default_factory=Inner)
    """The rest."""


def test_settings_survive_yaml():
    made = build_settings(Outer, {"name": "a", "inner": {"rate": 2.5e-4, "sizes": [3, 4, 5]}})
    assert made.inner.sizes == (3, 4, 5)
    assert build_settings(Outer, parse_yaml(to_yaml(as_mapping(made)))) == made


@given(
    name=st.text(),
    deep=st.booleans(),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    sizes=st.lists(st.integers(-(2**53), 2**53)),
)
def test_any_settings_survive_yaml(name, deep, rate, sizes):
    made = Outer(name=name, deep=deep, inner=Inner(rate=rate, sizes=tuple(sizes)))
    assert build_settings(Outer, parse_yaml(to_yaml(as_mapping(made)))) == made


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"name": "a", "inner": {"ratte": 1.0}}, r"unknown key 'run\.inner\.ratte'; did you mean 'rate'"),
        ({"name": "a", "dep": True}, r"unknown key 'run\.dep'; did you mean 'deep'"),
        ({}, r"key 'run\.name' is missing"),
        ({"name": 3}, r"run\.name: .*got 3"),
        ({"name": "a", "deep": "yes"}, r"run\.deep"),
        ({"name": "a", "deep": 1}, r"run\.deep"),
        ({"name": "a", "inner": {"rate": "fast"}}, r"run\.inner\.rate"),
        ({"name": "a", "inner": {"rate": float("nan")}}, "not a finite number"),
        ({"name": "a", "inner": {"sizes": [1.5]}}, r"run\.inner\.sizes\.0"),
        ({"name": object()}, "plain values"),
    ],
)
def test_mistakes_are_refused_by_name(choices, message):
    with pytest.raises(ConfigError, match=message):
        build_settings(Outer, choices, where="run")


def test_settings_cannot_be_changed_or_given_by_position():
    made = Outer(name="a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "b"
    with pytest.raises(ValueError, match="positional"):
        Outer("a")


def test_overrides_reach_into_groups_and_read_numbers_as_people_write_them():
    base = {"name": "a", "inner": {"rate": 1.0}}
    changed = apply_overrides(base, ["inner.rate=1e-3", "inner.sizes=[7, 8]", "deep=true"])
    made = build_settings(Outer, changed)
    assert made == Outer(name="a", deep=True, inner=Inner(rate=1e-3, sizes=(7, 8)))
    assert base == {"name": "a", "inner": {"rate": 1.0}}, "the original is left alone"


@pytest.mark.parametrize(
    "override", ["rate", "=3", "a..b=1", "name.first=x", "a={", "a=!!python/object:os.system {}"]
)
def test_malformed_overrides_are_refused(override):
    with pytest.raises(ConfigError):
        apply_overrides({"name": "a"}, [override])


@pytest.mark.parametrize("text", ["[1, 2]", "a: 1\na: 2", "a: [", "!!python/object/apply:os.system ['true']", "\0"])
def test_files_that_are_no_settings_are_refused(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        read_yaml(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read settings from .*none\.yaml"):
        read_yaml(tmp_path / "none.yaml")
