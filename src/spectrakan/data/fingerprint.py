"""A set in one line of text: what a record keeps to know its data again."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from spectrakan.fields import Trajectories

BLOCK_VALUES = 2**22


def fingerprint(trajectories: Trajectories) -> str:
    """SHA-256 over names, grid, times, parameters and every number, read a few samples at a time.

    The same set has the same fingerprint in memory and in a file, in every byte order; another type of number
    makes it another set.
    """
    grid = trajectories.grid
    names = {
        "task": trajectories.task,
        "fields": [[spec.name, spec.unit, spec.positive] for spec in trajectories.fields],
        "input_fields": [[spec.name, spec.unit, spec.positive] for spec in trajectories.input_fields],
        "param_names": list(trajectories.param_names),
        "constants": dict(trajectories.constants),
        "boundary": list(grid.boundary),
    }
    total = hashlib.sha256(json.dumps(names, sort_keys=True).encode())
    small = [trajectories.times, *(axis.numpy() for axis in (*grid.coordinates, *grid.edges, *grid.weights))]
    if trajectories.params is not None:
        small.append(trajectories.params)
    for array in small:
        total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    for field in (trajectories.values, trajectories.inputs):
        if field is None:
            continue
        kind = field.dtype.newbyteorder("<")
        total.update(f"{kind.name} {tuple(field.shape)}".encode())
        step = max(1, BLOCK_VALUES // max(1, int(np.prod(field.shape[1:]))))
        for begin in range(0, int(field.shape[0]), step):
            total.update(np.ascontiguousarray(field[begin : begin + step], dtype=kind).tobytes())
    return total.hexdigest()
