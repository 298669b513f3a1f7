"""A set is known again by its fingerprint, and a changed one is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectrakan.data import fingerprint as module
from spectrakan.data import load, save_dataset
from spectrakan.data.fingerprint import fingerprint
from spectrakan.data.generate import generate
from spectrakan.fields import FieldSpec, Grid, Trajectories


def darcy() -> Trajectories:
    return generate("darcy2d", 5, resolution=8, params={"beta": (1.0, 2.0)})


def test_memory_file_and_block_size_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = darcy()
    expected = fingerprint(made)
    assert expected == fingerprint(darcy())
    path = save_dataset(tmp_path / "set.h5", made, dtype=None)
    assert fingerprint(load.load_dataset(path)) == expected
    monkeypatch.setattr(load, "HELD_BYTES", 0)
    monkeypatch.setattr(module, "BLOCK_VALUES", 130)
    assert fingerprint(load.load_dataset(path)) == expected
    foreign = np.asarray(made.values).astype(">f8")
    assert fingerprint(replace(made, values=foreign)) == expected


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
        replace(made, task=""),
        replace(made, constants={}),
        replace(made, fields=(FieldSpec("u"),)),
        replace(made, grid=Grid.uniform((8, 8))),
        replace(made, values=np.asarray(made.values, dtype=np.float32)),
    ]
    assert len({fingerprint(item) for item in (made, *changed)}) == len(changed) + 1
