"""Load each file named on standard input and say, one JSON line a file, what came of it.

Run as a process of its own, so that a crash or a hang of a decoder can be told apart. The word is
`loaded` with a digest of everything in the set, `refused` for a `DataFormatError`, `wrong` for a set that is
not what h5py reads from the same file, and `escaped` for any other exception. `kibibytes` is the largest memory
of the process so far.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import traceback
from pathlib import Path

import h5py
import numpy as np

from spectrakan.data import load_dataset
from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories
from spectrakan.models import from_pretrained

MODEL = "saved_model"


def digest(found: Trajectories) -> str:
    total = hashlib.sha256()
    arrays = [found.values, found.inputs, found.params, found.times]
    arrays += [*found.grid.coordinates, *found.grid.edges, *found.grid.weights]
    for array in arrays:
        if array is not None:
            numbers = np.asarray(array)
            total.update(f"{numbers.shape} {numbers.dtype.name}".encode())
            total.update(np.ascontiguousarray(numbers).tobytes())
    total.update(repr((found.fields, found.input_fields, found.param_names, found.name)).encode())
    total.update(repr((found.grid.boundary, sorted(found.constants.items()))).encode())
    return total.hexdigest()


def agrees_with_h5py(path: Path, found: Trajectories) -> bool:
    """Whether fields in PDEBench's layout are what a plain reader of HDF5 gets."""
    values = np.asarray(found.values)
    with h5py.File(path, "r") as file:
        if "tensor" in file:
            stored = file["tensor"][...].reshape(values.shape)
        elif {"density", "pressure", "Vx"} <= set(file):
            names = ["density", *[f"V{axis}" for axis in "xyz"[: values.ndim - 3]], "pressure"]
            stored = np.stack([file[name][...] for name in names], axis=-1)
        elif any("data" in item for item in file.values() if isinstance(item, h5py.Group)):
            stored = np.stack([file[name]["data"][...] for name in sorted(file) if "data" in file[name]])
        else:
            return True
    same: list[bool] = [np.array_equal(values, stored, equal_nan=True)]
    for axis in range(2, values.ndim - 1):  # stored against the direction of its coordinate
        same.append(np.array_equal(values, np.flip(stored, axis), equal_nan=True))
    return any(same)


def outcome(path: Path) -> dict[str, str]:
    try:
        if path.name == MODEL:
            model = from_pretrained(path)
            return {"word": "loaded", "detail": hashlib.sha256(repr(model.state_dict()).encode()).hexdigest()}
        found = load_dataset(path)
        if path.is_file() and h5py.is_hdf5(path) and not agrees_with_h5py(path, found):
            return {"word": "wrong", "detail": "h5py reads other numbers"}
        return {"word": "loaded", "detail": digest(found)}
    except DataFormatError as problem:
        return {"word": "refused", "detail": str(problem)}
    except BaseException:
        return {"word": "escaped", "detail": traceback.format_exc()}


def main() -> None:
    for line in sys.stdin:
        result = outcome(Path(line.rstrip("\n")))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sys.stdout.write(json.dumps(result | {"kibibytes": memory}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
