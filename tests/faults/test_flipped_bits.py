"""Our own files carry checksums: no flipped bit anywhere in them changes what is loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spectrakan.data import load_dataset
from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories


def content_of(found: Trajectories) -> list[object]:
    """Everything that a set holds, in a form that compares by bits."""
    grid = found.grid
    arrays = [found.values, found.inputs, found.params, found.times]
    arrays += [*grid.coordinates, *grid.edges, *grid.weights]
    numbers = [np.asarray(array) for array in arrays if array is not None]
    plain: list[object] = [(array.shape, array.dtype.str, array.tobytes()) for array in numbers]
    names = (found.fields, found.input_fields, found.param_names, found.name)
    return [*plain, names, grid.boundary, dict(found.constants)]


@pytest.mark.parametrize("name", ["native.h5", "steady.h5"])
def test_a_flipped_bit_is_refused_or_harmless(sound_files: list[Path], tmp_path: Path, name: str):
    sound = next(path for path in sound_files if path.name == name)
    expected, content = content_of(load_dataset(sound)), sound.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for number, place in enumerate(rng.permutation(len(content))[:80]):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        path = tmp_path / f"{number}{sound.suffix}"
        path.write_bytes(damaged)
        try:
            found = load_dataset(path)
        except DataFormatError:
            refused += 1
        else:
            assert content_of(found) == expected, f"bit of byte {place}"
    assert refused > 40
