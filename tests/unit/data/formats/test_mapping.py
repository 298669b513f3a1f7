"""A mapping makes any file readable, and says what is wrong with itself or with the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from spectrakan.config import as_mapping, build_settings, parse_yaml
from spectrakan.data import DataMapping, load_dataset
from spectrakan.data.formats.mapping import MAPPING_HELP
from spectrakan.errors import ConfigError, DataFormatError

RNG = np.random.default_rng(0)
HEIGHT = RNG.standard_normal((5, 2, 6, 3))  # y, sample, x, time
SPEED = RNG.standard_normal((3, 2, 2, 6, 5))  # time, sample, channel, x, y
LAND = RNG.standard_normal((2, 1, 6, 5))

TEXT = """
values:
  - {array: run/h, axes: [y, sample, x, time], fields: [height], units: [m], positive: [height]}
  - {array: run/v, axes: [time, sample, channel, x, y], fields: [u, v], units: [m/s, m/s]}
coordinates: {x: lon, y: lat}
times: hours
params: {reynolds: Re}
boundary: [periodic, wall]
latitude: y
name: shallow_water2d
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["run/h"], file["run/v"], file["run/land"] = HEIGHT, SPEED, LAND
        file["lon"], file["lat"] = np.arange(6.0), np.array([60.0, 30.0, 0.0, -30.0, -60.0])
        file["hours"], file["Re"] = np.array([[0.0], [1.0], [3.0]]), np.array([10.0, 20.0])
    return tmp_path / "foreign.h5"


def test_fields_axes_and_coordinates_are_found(path: Path, tmp_path: Path):
    (tmp_path / "map.yaml").write_text(TEXT)
    found = load_dataset(path, mapping=tmp_path / "map.yaml")
    height = HEIGHT.transpose(1, 3, 2, 0)[..., None]
    speed = SPEED.transpose(1, 0, 3, 4, 2)
    expected = np.concatenate([height, speed], axis=-1)[:, :, :, ::-1]  # latitudes go south to north
    np.testing.assert_array_equal(np.asarray(found.values), expected)
    assert [(spec.name, spec.unit, spec.positive) for spec in found.fields] == [
        ("height", "m", True),
        ("u", "m/s", False),
        ("v", "m/s", False),
    ]
    assert found.times.tolist() == [0.0, 1.0, 3.0]
    assert found.grid.coordinates[1].tolist() == [-60.0, -30.0, 0.0, 30.0, 60.0]
    sines = np.sin(np.deg2rad([-75.0, -45.0, -15.0, 15.0, 45.0, 75.0]))
    np.testing.assert_allclose(found.grid.weights[1].numpy(), np.diff(sines) / (sines[-1] - sines[0]))
    assert found.params is not None
    assert found.params.tolist() == [[10.0], [20.0]]
    assert (found.param_names, found.name, found.grid.boundary) == (
        ("reynolds",),
        "shallow_water2d",
        ("periodic", "wall"),
    )


def test_steady_problems_and_axes_to_drop(path: Path):
    mapping = {
        "inputs": [{"array": "run/land", "axes": ["sample", "drop", "x", "y"], "fields": ["land"]}],
        "values": [{"array": "Re", "axes": ["x"], "fields": ["u"]}],
    }
    with pytest.raises(ConfigError, match="same space axes"):
        load_dataset(path, mapping=mapping)
    mapping["values"] = [{"array": "run/land", "axes": ["sample", "time", "x", "y"], "fields": ["out"]}]
    found = load_dataset(path, mapping=mapping)
    assert found.steady
    np.testing.assert_array_equal(np.asarray(found.inputs), LAND[..., None])
    assert found.grid.bounds == ((0.0, 1.0), (0.0, 1.0))


def test_patterns_take_groups_as_samples(tmp_path: Path):
    fields = RNG.standard_normal((12, 4, 8))  # run2 comes before run10
    with h5py.File(tmp_path / "groups.h5", "w") as file:
        for number, field in enumerate(fields):
            file[f"run{number}/u"] = field
    mapping = {"values": [{"array": "run*/u", "axes": ["time", "x"], "fields": ["u"]}]}
    found = load_dataset(tmp_path / "groups.h5", mapping=mapping)
    np.testing.assert_array_equal(np.asarray(found.values), fields[..., None])


def test_any_container_can_be_mapped(tmp_path: Path):
    np.savez(tmp_path / "set.npz", p=HEIGHT)
    axes = ["y", "sample", "x", "time"]
    found = load_dataset(tmp_path / "set.npz", mapping={"values": [{"array": "p", "axes": axes, "fields": ["p"]}]})
    np.testing.assert_array_equal(np.asarray(found.values)[..., 0], HEIGHT.transpose(1, 3, 2, 0))


def entry(**changes: Any) -> dict[str, Any]:
    return {"array": "run/h", "axes": ["y", "sample", "x", "time"], "fields": ["h"], **changes}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({}, "key 'mapping.values' is missing"),
        ({"values": []}, "mapping.values"),
        ({"values": [entry(axes=["x", "x", "y", "time"])]}, "axis 'x' is named twice"),
        ({"values": [entry(axes=["x", "sample", "z", "time"])]}, "same space axes"),
        ({"values": [entry(fields=["h", "u"])]}, "no channel axis"),
        ({"values": [entry(units=["m", "s"])]}, "need as many units or none"),
        ({"values": [entry(positive=["p"])]}, "positive names"),
        ({"values": [entry()], "coordinates": {"x": "lon"}}, "coordinates must name all"),
        ({"values": [entry()], "boundary": ["wall"]}, "boundary names 1 axes, the data have 2"),
        ({"values": [entry()], "boundry": []}, "unknown key 'mapping.boundry'; did you mean 'boundary'"),
        ({"values": [entry(axes=["sample", "width", "x", "y"])]}, r"mapping\.values\.0\.axes\.1"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused(path: Path, mapping: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        load_dataset(path, mapping=mapping)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"values": [entry(array="run/hh")]}, "no array 'run/hh'; did you mean 'run/h'"),
        (
            {"values": [entry(axes=["y", "sample", "x"])]},
            r"'run/h': expected axes \(y, sample, x\), found shape",
        ),
        ({"values": [entry(axes=["y", "drop", "x", "time"])]}, "size 1 of an axis to drop"),
        ({"values": [entry(axes=["y", "channel", "x", "time"])]}, r"expected 1 channels \(h\), found 2"),
        ({"values": [entry()], "times": "lon"}, "'lon': expected one time for each of 3 frames, found 6"),
        ({"values": [entry()], "params": {"Re": "hours"}}, "a table of 2 rows, one a sample, found shape"),
        ({"values": [entry()], "coordinates": {"x": "lat", "y": "lat"}}, "6 cell centres along x, found 5"),
        (
            {"values": [entry(), entry(axes=["x", "sample", "y", "time"])]},
            "samples, time and space of 'run/h'",
        ),
        ({"values": [entry(array="walk*/h")]}, "arrays of one sample each, found none"),
        ({"values": [entry(array="run/*")]}, "arrays of one sample each, found an axis 'sample'"),
    ],
)
def test_a_mapping_that_does_not_fit_the_file_is_refused(path: Path, mapping: dict[str, Any], message: str):
    with pytest.raises(DataFormatError, match=message):
        load_dataset(path, mapping=mapping)


def test_settings_round_trip(path: Path):
    settings = build_settings(DataMapping, {"values": [entry()], "coordinates": {"x": "lon", "y": "lat"}})
    assert build_settings(DataMapping, as_mapping(settings)) == settings
    assert load_dataset(path, mapping=settings).values.shape == (2, 3, 6, 5, 1)


def test_a_mapping_may_be_settings_a_dictionary_or_a_file(path: Path, tmp_path: Path):
    (tmp_path / "map.yaml").write_text(TEXT)
    entries = parse_yaml(TEXT)
    settings = build_settings(DataMapping, entries)
    expected = np.asarray(load_dataset(path, mapping=settings).values)
    for mapping in (entries, tmp_path / "map.yaml", str(tmp_path / "map.yaml")):
        np.testing.assert_array_equal(np.asarray(load_dataset(path, mapping=mapping).values), expected)


def test_constants_of_a_mapping_are_kept(path: Path):
    found = load_dataset(path, mapping=parse_yaml(TEXT) | {"constants": {"gravity": 9.81}})
    assert dict(found.constants) == {"gravity": 9.81}


def test_the_explanation_of_mappings_is_itself_a_mapping():
    example = MAPPING_HELP.split("\n\n")[1]
    mapping = build_settings(DataMapping, parse_yaml(example))
    assert [entry.fields for entry in mapping.values] == [("height",), ("u", "v")]
    assert set(parse_yaml(example)) == set(as_mapping(mapping)), "every key is shown"
