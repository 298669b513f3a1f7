"""Where a result comes from: versions, commit and data; nothing about the machine's name or its user."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spectrakan.fields import Trajectories, blocks
from spectrakan.fields.grid_part import joined, whole_of

PACKAGES = ("spectrakan", "torch", "numpy", "scipy", "h5py")


def provenance(**entries: Any) -> dict[str, Any]:
    """What is needed beside settings to repeat a run, with further `entries`."""
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "system": f"{platform.system()} {platform.machine()}",
        "commit": _commit(),
        **entries,
    }


def data_digest(trajectories: Trajectories) -> str:
    """SHA-256 over names, units, constants, grid, times, parameters and every number, a few samples at a time.

    The same set has the same digest in memory and in a file, in every byte order; another type of number makes it
    another set. Processes that hold parts of the fields join them, and all get the digest of the whole.
    """
    grid = whole_of(trajectories.grid)
    names = {
        "problem": trajectories.name,
        "fields": [[spec.name, spec.unit, spec.positive] for spec in trajectories.fields],
        "input_fields": [[spec.name, spec.unit, spec.positive] for spec in trajectories.input_fields],
        "param_names": list(trajectories.param_names),
        "constants": dict(trajectories.constants),
        "boundary": list(grid.boundary),
    }
    digest = hashlib.sha256(json.dumps(names, sort_keys=True).encode())
    small = [trajectories.times, *(axis.numpy() for axis in (*grid.coordinates, *grid.edges, *grid.weights))]
    for numbers in small if trajectories.params is None else [*small, trajectories.params]:
        digest.update(np.ascontiguousarray(numbers, dtype="<f8").data)
    for array in (trajectories.values, trajectories.inputs):
        if array is None:
            continue
        kind = np.dtype(array.dtype).newbyteorder("<")
        digest.update(f"{kind.name} {(*array.shape[:2], *grid.shape, array.shape[-1])}".encode())
        if grid is trajectories.grid:
            for _, block in blocks(array):
                digest.update(np.ascontiguousarray(block, dtype=kind).data)
            continue
        for sample in range(array.shape[0]):
            part = torch.from_numpy(np.ascontiguousarray(array[sample], dtype=kind))
            digest.update(np.ascontiguousarray(joined(part, trajectories.grid, 1).numpy()).data)
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str | None:
    """The commit of the package's own checkout, with a mark if files differ from it; None if installed."""
    here = Path(__file__).resolve()

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=here.parent, capture_output=True, text=True, timeout=5, check=True).stdout

    try:
        git("ls-files", "--error-unmatch", here.name)
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").strip()
    except (OSError, subprocess.SubprocessError):
        return None
