"""MATLAB files as containers: version 5 through SciPy, version 7.3 as the HDF5 file that it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding
from spectrakan.data.formats.hdf5 import open_hdf5
from spectrakan.data.source import HeldSource, Source

HEADER_5 = b"MATLAB 5.0 MAT-file"
HEADER_73 = b"MATLAB 7.3 MAT-file"


def open_mat(path: Path) -> Container:
    """The numeric arrays of a version 5 file, in MATLAB's order of axes; they are held in memory."""
    arrays: dict[str, Source] = {}
    with decoding(path, kind="MATLAB 5"):
        content: dict[str, Any] = scipy.io.loadmat(path, struct_as_record=True, mat_dtype=False)
    for name, value in content.items():
        if not name.startswith("__") and isinstance(value, np.ndarray):
            arrays[name] = HeldSource(value)
    return Container(path, "MATLAB 5", arrays)


def open_mat73(path: Path) -> Container:
    """The datasets of a version 7.3 file, read lazily; HDF5 stores MATLAB's axes in reverse order."""
    container = open_hdf5(path, reverse=True)
    arrays = {name: source for name, source in container.arrays.items() if not name.startswith("#")}
    return Container(path, "MATLAB 7.3", arrays, container.attributes, faults=container.faults)
