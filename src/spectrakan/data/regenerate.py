"""The samples of a set on another grid or for longer: solved anew where they were generated, else averaged."""

import numpy as np

from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError
from spectrakan.fields import Array, Grid, Trajectories
from spectrakan.numerics.resample import overlap_matrix

SAMENESS = 1e-3
"""Largest difference from what is stored, over the range of the stored field; single precision stays far below."""


def regenerate(
    trajectories: Trajectories, *, resolution: int | None = None, frames: int | None = None
) -> Trajectories:
    """The same samples solved on `resolution` cells along the longest axis, or for `frames` frames.

    Sample i starts from the same function as sample i of `trajectories`: families draw functions before cells.
    Each is solved for when it is read. Sets that were not generated, or were changed since, are refused.

    >>> from spectrakan.data.generate import generate
    >>> coarse = generate("darcy2d", num_samples=2, resolution=8)
    >>> regenerate(coarse, resolution=16).values.shape
    (2, 1, 16, 16, 1)
    """
    # Solve the first sample as it is stored and compare, so that nothing foreign passes for the same samples.
    own = _solved_anew(trajectories, None, None)
    stored, made = (np.asarray(data.values[0], dtype=np.float64) for data in (trajectories, own))
    alike = made.shape == stored.shape and np.allclose(own.times, trajectories.times)
    scale = float(np.ptp(stored)) or 1.0
    if not alike or float(np.abs(made - stored).max()) > SAMENESS * scale:
        raise ConfigError(
            f"the stored samples of {trajectories.name} are not what their seed and parameters give: they were "
            "changed, or made by another version of the solver; generate them anew"
        )
    return _solved_anew(trajectories, resolution, frames)


def _solved_anew(trajectories: Trajectories, resolution: int | None, frames: int | None) -> Trajectories:
    seed, params = trajectories.origin.get("seed"), trajectories.origin.get("params", {})
    if not isinstance(seed, int) or not isinstance(params, dict):
        raise ConfigError(
            "it is not known how these samples were made, so they cannot be solved anew: they were not made by "
            "`generate`, or were strided or averaged since; make sets with `spectrakan generate TASK --resolution R "
            "--frames N` and evaluate on those"
        )
    return generate(
        trajectories.name,
        trajectories.num_samples,
        _shape_at(trajectories, resolution),
        seed,
        frames=None if trajectories.steady else frames or len(trajectories.times),
        params=params,
        dtype=None,
    )


def _shape_at(trajectories: Trajectories, resolution: int | None) -> tuple[int, ...]:
    """Cells along each axis when the longest has `resolution` and the others keep their proportion."""
    own = trajectories.grid.shape
    return own if resolution is None else tuple(round(size * resolution / max(own)) for size in own)


def brought_to(trajectories: Trajectories, resolution: int | None) -> tuple[Trajectories, str]:
    """The samples on `resolution` cells along the longest axis, and how they got there."""
    if resolution is None or resolution == max(trajectories.grid.shape):
        return trajectories, "given"
    if trajectories.origin:
        return regenerate(trajectories, resolution=resolution), "solved"
    return coarsen(trajectories, resolution), "averaged"


def coarsen(trajectories: Trajectories, resolution: int) -> Trajectories:
    """Fields averaged onto `resolution` equal cells per axis (the longest one, others in proportion)."""
    old = trajectories.grid
    shape = _shape_at(trajectories, resolution)
    if shape == old.shape:
        return trajectories
    if resolution > max(old.shape) or min(shape) < 1:
        raise ConfigError(
            f"the data have {' x '.join(map(str, old.shape))} cells and cannot be brought to {resolution}: "
            "averages exist on coarser grids only, and these samples do not say how they were generated; evaluate on "
            f"a set solved there (`spectrakan generate TASK --resolution {resolution}`)"
        )
    if not old.is_uniform():
        raise ConfigError("only fields on equal cells can be brought to another resolution")
    new = Grid.uniform(shape, old.bounds, old.boundary)
    maps = [overlap_matrix(fine, coarse).numpy() for fine, coarse in zip(old.edges, new.edges, strict=True)]

    def average(array: Array) -> Array:
        values = np.asarray(array)
        for axis, matrix in enumerate(maps, start=2):
            values = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(values.astype(array.dtype))

    return trajectories.with_arrays(average, grid=new, origin={})
