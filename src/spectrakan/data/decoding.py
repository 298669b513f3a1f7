"""The one place where what a foreign decoder raises becomes a `DataFormatError`.

h5py, zipfile, SciPy, Zarr and torch raise a dozen kinds of exception on damaged bytes, and document few.
Every call into such a decoder stands inside `decoding`, and little else does, so that a mistake of this
package is not taken for a damaged file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spectrakan.errors import DataFormatError, SpectraKANError


def mismatch(path: Path, key: str, expected: str, found: str, remedy: str = "") -> DataFormatError:
    """The error for a part of a file that is not what its format promises."""
    place = f"'{path}'" + (f", '{key}'" if key else "")
    return DataFormatError(f"{place}: expected {expected}, found {found}" + (f"; {remedy}" if remedy else ""))


@contextmanager
def decoding(path: Path, key: str = "", *, kind: str = "data") -> Iterator[None]:
    """Turn whatever a decoder raises inside the block into one `DataFormatError` that names file and key."""
    try:
        yield
    except SpectraKANError:
        raise
    except Exception as problem:
        reason = " ".join(str(problem).split())[:300]
        found = f"{type(problem).__name__}: {reason}" if reason else type(problem).__name__
        raise mismatch(path, key, f"readable {kind}", found, "the file is damaged or of another kind") from problem


def missing_package(path: Path, package: str, extra: str) -> DataFormatError:
    """The error for a file whose reader needs an extra of this package."""
    return DataFormatError(
        f"'{path}' needs the package {package}, which is not installed: run `pip install 'spectrakan[{extra}]'`"
    )
