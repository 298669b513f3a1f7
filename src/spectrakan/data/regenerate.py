"""The samples of a generated set once more: the same functions, solved on another grid or for longer."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectrakan.data.generate import generate_lazily, recipe_for
from spectrakan.data.progress import Progress
from spectrakan.data.recipe import Recipe
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories

SAMENESS = 1e-3
"""Largest difference from what is stored, over the range of the stored field; single precision stays far below."""


def regenerate(
    trajectories: Trajectories,
    *,
    resolution: int | None = None,
    frames: int | None = None,
    progress: Progress | None = None,
) -> Trajectories:
    """The same samples solved on `resolution` cells along the longest axis, or for `frames` frames.

    Sample i starts from the same function as sample i of `trajectories`: families draw functions before cells.
    Each is solved for when it is read. Sets that were not generated, or were changed since, are refused.

    >>> from spectrakan.data.generate import generate
    >>> coarse = generate("darcy2d", num_samples=2, resolution=8)
    >>> regenerate(coarse, resolution=16).values.shape
    (2, 1, 16, 16, 1)
    """
    seed, params = _origin(trajectories)
    require_same(trajectories)
    return generate_lazily(
        trajectories.task,
        trajectories.num_samples,
        shape_at(trajectories, resolution),
        seed,
        frames=_frames(trajectories, frames),
        params=params,
        progress=progress,
    )


def recipe_of(trajectories: Trajectories, resolution: int | None = None) -> Recipe:
    """What the samples were made from, on their own grid or another."""
    seed, params = _origin(trajectories)
    cells, frames = shape_at(trajectories, resolution), _frames(trajectories, None)
    return recipe_for(trajectories.task, trajectories.num_samples, cells, seed, frames=frames, params=params)


def shape_at(trajectories: Trajectories, resolution: int | None) -> tuple[int, ...]:
    """Cells along each axis when the longest has `resolution` and the others keep their proportion."""
    own = trajectories.grid.shape
    return own if resolution is None else tuple(round(size * resolution / max(own)) for size in own)


def _frames(trajectories: Trajectories, frames: int | None) -> int | None:
    return None if trajectories.steady else frames or len(trajectories.times)


def _origin(trajectories: Trajectories) -> tuple[int, dict[str, Any]]:
    seed, params = trajectories.origin.get("seed"), trajectories.origin.get("params", {})
    if not isinstance(seed, int) or not isinstance(params, dict):
        raise ConfigError(
            "it is not known how these samples were made, so they cannot be solved anew: they were not made by "
            "`generate`, or were strided or averaged since; make sets with `spectrakan generate TASK --resolution R "
            "--frames N` and evaluate on those"
        )
    return seed, params


def require_same(trajectories: Trajectories) -> None:
    """Solve the first sample as it is stored and compare, so that nothing foreign passes for the same samples."""
    own = recipe_of(trajectories)
    stored = np.asarray(trajectories.values[0], dtype=np.float64)
    made = own.solve(range(1))[0].numpy()
    alike = made.shape == stored.shape and np.allclose(own.times, trajectories.times)
    scale = float(np.ptp(stored)) or 1.0
    if not alike or float(np.abs(made - stored).max()) > SAMENESS * scale:
        raise ConfigError(
            f"the stored samples of {trajectories.task} are not what their seed and parameters give: they were "
            "changed, or made by another version of the solver; generate them anew"
        )
