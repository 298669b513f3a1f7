"""Where a result comes from: versions, commit and data; nothing about the machine's name or its user."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from spectrakan.fields import Array, Trajectories

PACKAGES = ("spectrakan", "torch", "numpy", "scipy", "h5py")
BLOCK_VALUES = 2**22


def provenance(**facts: Any) -> dict[str, Any]:
    """What must be known beside settings to repeat a run, with further `facts` put in."""
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "system": f"{platform.system()} {platform.machine()}",
        "commit": _commit(),
        **facts,
    }


def data_digest(trajectories: Trajectories) -> str:
    """SHA-256 over everything that a model can see of a data set: fields, grid, times and parameters.

    It depends on the numbers, not on the file that held them.
    """
    digest = hashlib.sha256()
    names = [spec.name for spec in (*trajectories.input_fields, *trajectories.fields)]
    digest.update(repr((names, trajectories.values.shape, trajectories.param_names)).encode())
    small = [trajectories.times, *(axis.numpy() for axis in trajectories.grid.edges)]
    if trajectories.params is not None:
        small.append(trajectories.params)
    for numbers in small:
        digest.update(np.ascontiguousarray(numbers, dtype="<f8").data)
    for array in (trajectories.inputs, trajectories.values):
        if array is not None:
            _add(digest, array)
    return digest.hexdigest()


def _add(digest: Any, array: Array) -> None:
    kind = np.dtype(array.dtype).newbyteorder("<")
    step = max(1, BLOCK_VALUES // max(1, int(np.prod(array.shape[1:]))))
    for first in range(0, array.shape[0], step):
        digest.update(np.ascontiguousarray(array[first : first + step], dtype=kind).data)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str | None:
    """The commit of the package's own checkout, with a mark if files differ from it; None if installed."""
    here = Path(__file__).resolve().parent
    try:
        told = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=here, capture_output=True, text=True, timeout=5, check=True,
        )  # fmt: skip
        inside = subprocess.run(
            ["git", "ls-files", "--error-unmatch", Path(__file__).name],
            cwd=here, capture_output=True, timeout=5, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() if inside.returncode == 0 else None
