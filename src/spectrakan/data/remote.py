"""Files behind an address (`hf://`, `https://`, `s3://`, ...), read block by block through fsspec.

    hf://datasets/ORGANISATION/NAME/path/in/it.hdf5      needs huggingface_hub (extra `hub`)

Only HDF5 is read this way: the parts of the file that a window touches are fetched when they are read, and nothing is
kept on disk. Heaps of texts cannot be checked before they are read, as those of local files are: read addresses that
you trust.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py

from spectrakan.errors import ConfigError, DataFormatError

ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+")
BLOCK_BYTES = 2**20
"""Bytes that are fetched at a time."""


def is_remote(path: Path | str) -> bool:
    """Whether a path is an address; `Path` folds the two slashes of one.

    >>> is_remote("hf://datasets/a/b.hdf5"), is_remote(Path("s3://bucket/b.h5")), is_remote("/data/b.h5")
    (True, True, False)
    """
    return ADDRESS.match(str(path)) is not None


def open_remote(path: Path) -> Any:
    """The HDF5 file at an address."""
    address = ADDRESS.sub(r"\1://", str(path), count=1)
    try:
        import fsspec
    except ImportError:
        raise ConfigError(f"reading '{address}' needs fsspec: pip install fsspec, or download the file") from None
    try:
        return h5py.File(fsspec.open(address, "rb", block_size=BLOCK_BYTES).open(), "r")
    except (ImportError, ValueError) as problem:
        raise ConfigError(f"cannot open '{address}': {problem}; hf:// needs spectrakan[hub]") from None
    except OSError as problem:
        raise DataFormatError(f"cannot read '{address}' as HDF5: {problem}") from None
