"""A data set is recognised by its digest, and a changed one is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectrakan.data import files
from spectrakan.data.files import write_dataset
from spectrakan.data.generate import generate
from spectrakan.fields import FieldSpec, Grid, Trajectories
from spectrakan.runs import data_digest


def darcy() -> Trajectories:
    return generate("darcy2d", 5, resolution=8, params={"beta": (1.0, 2.0)})


def test_memory_file_and_block_size_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = darcy()
    expected = data_digest(made)
    assert expected == data_digest(darcy())
    path = write_dataset(tmp_path / "set.h5", made, dtype=None)
    assert data_digest(files.load_dataset(path)) == expected
    monkeypatch.setattr(files, "HELD_BYTES", 0)
    monkeypatch.setattr("spectrakan.fields.trajectories.BLOCK_BYTES", 1040)
    assert data_digest(files.load_dataset(path)) == expected
    foreign = np.asarray(made.values).astype(">f8")
    assert data_digest(replace(made, values=foreign)) == expected


def test_every_part_counts():
    made = darcy()
    values, inputs, params = np.array(made.values), np.array(made.inputs), np.array(made.params)
    values[4, 0, 7, 7, 0] = np.nextafter(values[4, 0, 7, 7, 0], 1)
    inputs[0, 0, 0, 0, 0] += 1
    params[2, 0] += 1e-9
    changed = [
        replace(made, values=values),
        replace(made, inputs=inputs),
        replace(made, params=params),
        replace(made, times=made.times + 1),
        replace(made, name=""),
        replace(made, constants={**made.constants, "viscosity": 1.0}),
        replace(made, constants={**made.constants, "viscosity": 2.0}),
        replace(made, fields=(FieldSpec("u"),)),
        replace(made, fields=(replace(made.fields[0], unit="hPa"),)),
        replace(made, input_fields=(replace(made.input_fields[0], unit="m2"),)),
        replace(made, grid=Grid.uniform((8, 8))),
        replace(made, values=np.asarray(made.values, dtype=np.float32)),
    ]
    assert len({data_digest(item) for item in (made, *changed)}) == len(changed) + 1
