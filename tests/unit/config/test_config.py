"""Settings: strict, plain, and able to say what was meant."""

from __future__ import annotations

import dataclasses
import os
import time
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectrakan.config import (
    Count,
    apply_overrides,
    as_mapping,
    build_settings,
    describe,
    parse_yaml,
    read_yaml,
    settings,
    to_yaml,
    to_yaml_with_help,
)
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


@pytest.mark.parametrize("text", ["1e100", "-1e-3", ".5E2", "1.e8", "yes", "null", "3"])
def test_texts_that_look_like_other_values_stay_texts(text):
    assert parse_yaml(to_yaml({"name": text})) == {"name": text}


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


def bomb(levels: int = 25) -> str:
    """A few lines that stand for 9^levels values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb(), "references"),
        ("base: &b {a: 1}\nother: {<<: *b}", r"line 2: references"),
        ("\n".join(f"key{number}: {number}" for number in range(60_000)), "at most"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a: " + "{a: " * 5000 + "1" + "}" * 5000, "nested too deeply"),
        ("\n".join("  " * depth + "a:" for depth in range(300)) + " 1", "nested too deeply"),
    ],
)
def test_texts_that_take_memory_or_time_are_refused_at_once(text, message):
    begin = time.perf_counter()
    with pytest.raises(ConfigError, match=message):
        parse_yaml(text)
    assert time.perf_counter() - begin < 5


def test_many_keys_are_parsed_in_linear_time():
    def seconds(count: int) -> float:
        text = "\n".join(f"k{number}: 1" for number in range(count))
        begin = time.process_time()
        assert len(parse_yaml(text)) == count
        return time.process_time() - begin

    assert seconds(16_000) < 20 * seconds(2_000)


def test_many_mistakes_make_a_short_message():
    begin = time.perf_counter()
    with pytest.raises(ConfigError, match="and 19990 more mistakes") as caught:
        build_settings(Inner, {f"key{number}": 1 for number in range(20_000)})
    assert len(str(caught.value)) < 2000
    with pytest.raises(ConfigError, match="got"):
        build_settings(Outer, {"name": ["x" * 100_000]})
    assert time.perf_counter() - begin < 5


def test_deep_settings_are_refused():
    nested: dict = {}
    for _ in range(5000):
        nested = {"inner": nested}
    with pytest.raises(ConfigError, match="nested too deeply"):
        build_settings(Outer, nested)
    with pytest.raises(ConfigError, match="expected key=value"):
        apply_overrides({}, [".".join(["a"] * 5000) + "=1"])


@pytest.mark.parametrize("kind", ["fifo", "device", "large"])
def test_only_regular_files_of_moderate_size_are_read(tmp_path, kind):
    path = tmp_path / "run.yaml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(5 * 2**30)
    with pytest.raises(ConfigError, match=r"not a regular file|at most"):
        read_yaml(path)


def test_shared_values_are_written_out():
    shared = [1, 2]
    assert parse_yaml(to_yaml({"a": shared, "b": shared})) == {"a": [1, 2], "b": [1, 2]}


@settings
class Run:
    """A run."""

    outer: Outer
    """All
    about it."""
    extra: Inner | None = None
    """A group that may be absent."""
    model: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    """Settings of the model."""


def test_yaml_with_help_explains_every_key_and_parses_back():
    mapping = {
        "outer": {"name": "x: # y\n- z", "deep": True, "inner": {"rate": 1e-05, "sizes": [1, 2]}},
        "extra": {"rate": 2.0, "sizes": []},
        "model": {"rate": 3.0, "other": {}},
    }
    text = to_yaml_with_help(Run, mapping, {"model": describe(Inner)})
    assert parse_yaml(text) == mapping
    lines = text.splitlines()
    for key, comment in [
        ("outer:", "# All about it."),
        ("  deep: true", "  # Whether it is deep."),
        ("  inner:", "  # The rest."),
        ("    rate: 1.0e-05", "    # How fast."),
        ("  rate: 2.0", "  # How fast."),
        ("  rate: 3.0", "  # How fast."),
        ("model:", "# Settings of the model."),
    ]:
        assert lines[lines.index(key) - 1] == comment


@given(
    name=st.text(),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    sizes=st.lists(st.integers(-(2**53), 2**53)),
    model=st.dictionaries(st.text(), st.text() | st.lists(st.text()) | st.none(), max_size=3),
)
def test_any_yaml_with_help_parses_back(name, rate, sizes, model):
    mapping = {"outer": {"name": name, "inner": {"rate": rate, "sizes": sizes}}, "model": model}
    assert parse_yaml(to_yaml_with_help(Run, mapping)) == mapping


def test_a_count_is_at_least_one():
    @settings
    class Counted:
        """Counts."""

        number: Count = 1
        """How many."""

    assert build_settings(Counted, {"number": 3}).number == 3
    with pytest.raises(ConfigError, match="greater than or equal to 1"):
        build_settings(Counted, {"number": 0})
