"""Our own files: what stands in them, and that they refuse to be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from spectrakan.data import load_dataset, write_dataset
from spectrakan.data.formats.native import chunk_shape
from spectrakan.errors import DataFormatError
from spectrakan.fields import FieldSpec, Grid, Trajectories

Make = Callable[..., Trajectories]


@pytest.fixture
def path(tmp_path: Path, in_time: Make) -> Path:
    return write_dataset(tmp_path / "set.h5", in_time())


def change_schema(path: Path, **changes: object) -> None:
    with h5py.File(path, "a") as file:
        schema = json.loads(file.attrs["schema"]) | changes
        file.attrs["schema"] = np.bytes_(json.dumps(schema).encode())


def test_the_written_layout_is_the_documented_one(path: Path):
    with h5py.File(path) as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        kinds = ("centres", "edges", "weights")
        assert sorted(names) == sorted(
            ["values", "times", "params", *(f"grid/{axis}/{kind}" for axis in "xy" for kind in kinds)]
        )
        assert all(file[name].fletcher32 for name in names)
        assert file["values"].chunks == (1, 4, 6, 5, 2)
        schema = json.loads(file.attrs["schema"])
    assert schema["format"] == "spectrakan-trajectories"
    assert schema["version"] == 1
    assert schema["fields"][0] == {"name": "density", "unit": "kg/m³", "positive": True}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "'schema': expected .* version 1.*version: Input should be 1, got 2; a newer release"),
        ({"format": "other"}, "'schema': expected 'spectrakan-trajectories'.*got 'other'"),
        ({"fields": []}, "contradict each other: values"),
        ({"input_fields": [{"name": "u", "unit": "", "positive": False}]}, "no array 'inputs'"),
        ({"boundary": ["open", "wall"]}, "'schema': expected .* version 1.*boundary"),
        ({"bondary": []}, "unknown key 'bondary'; did you mean 'boundary'"),
        ({"param_names": ["Re"]}, "contradict each other: params"),
    ],
)
def test_a_schema_that_contradicts_the_arrays_is_refused(path: Path, changes: dict[str, object], message: str):
    change_schema(path, **changes)
    with pytest.raises(DataFormatError, match=message):
        load_dataset(path)


def test_a_flipped_bit_in_a_coordinate_is_found(path: Path):
    with h5py.File(path) as file:
        place = file["grid/x/centres"].id.get_chunk_info(0).byte_offset
    content = bytearray(path.read_bytes())
    content[place + 3] ^= 4
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match="'grid/x/centres'"):
        load_dataset(path)


def test_missing_parts_are_named(path: Path):
    with h5py.File(path, "a") as file:
        del file["values"]
    with pytest.raises(DataFormatError, match="no known meaning"):
        load_dataset(path)


def test_a_flipped_bit_in_a_field_is_found(path: Path):
    with h5py.File(path) as file:
        place = file["values"].id.get_chunk_info(1).byte_offset
    content = bytearray(path.read_bytes())
    content[place + 17] ^= 4
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match="'values'"):
        load_dataset(path)


def test_what_was_never_written_is_not_read_as_zeros(tmp_path: Path):
    for name, layout in {"whole": None, "chunked": (1, 2, 4)}.items():
        path = tmp_path / f"{name}.h5"
        with h5py.File(path, "w") as file:
            reserved = file.create_dataset("tensor", (3, 2, 4), "f4", chunks=layout)
            if layout:
                reserved[:2] = 1.0
        with pytest.raises(DataFormatError, match=r"'tensor'.*(never written|2 of 3 chunks)"):
            load_dataset(path)


@pytest.mark.parametrize("ending", ["h5", "nc"])
def test_a_file_is_hardly_larger_than_its_numbers(tmp_path: Path, ending: str):
    """101 frames of 12 kB: chunks of 1 MiB hold 85 frames, and two of them would waste 40 %."""
    values = np.random.default_rng(0).standard_normal((3, 101, 55, 56, 1)).astype(np.float32)
    made = Trajectories(values, Grid.uniform((55, 56)), np.arange(101.0), (FieldSpec("u"),))
    path = write_dataset(tmp_path / f"set.{ending}", made)
    assert values.nbytes < path.stat().st_size < 1.05 * values.nbytes + 100_000


@pytest.mark.parametrize("frames", [1, 2, 3, 7, 21, 86, 101, 1009])
@pytest.mark.parametrize("cells", [16, 3080, 100_000, 10_000_000])
def test_chunks_waste_at_most_5_percent_and_hold_about_a_mebibyte(frames: int, cells: int):
    _, chunk, *_ = chunk_shape((4, frames, cells, 1), np.dtype("f4"))
    reserved = -(-frames // chunk) * chunk
    assert frames <= reserved <= 1.05 * frames
    assert chunk == 1 or chunk * cells * 4 <= 2**20
