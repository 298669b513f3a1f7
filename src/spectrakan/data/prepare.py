"""The whole road from a task or a file to what training needs: samples, split and units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from spectrakan.config import settings
from spectrakan.data.catalog import Task
from spectrakan.data.catalog import task as task_named
from spectrakan.data.climate import load_climate
from spectrakan.data.generate import generate
from spectrakan.data.lazy import LazyArray
from spectrakan.data.load import load_dataset
from spectrakan.data.normalize import Units, fit_units
from spectrakan.data.progress import Progress
from spectrakan.data.split import Split, SplitSettings, split_trajectories
from spectrakan.data.survey import require_finite
from spectrakan.data.windows import Starts, Windows, WindowSettings
from spectrakan.errors import ConfigError
from spectrakan.fields import Array, Trajectories

Count = Annotated[int, Field(ge=1)]

GENERATED_SAMPLES = 100
"""Samples that are made where neither a file nor a number is given."""


@settings
class DataSettings:
    """Where samples come from and how they are cut; what is not given is the task's."""

    path: str | None = None
    """File to read; without it samples are generated (or, for climate2d, come with the package)."""
    mapping: str | None = None
    """YAML file that says what the arrays of a foreign file mean (docs/data_format.md)."""
    num_samples: Count | None = None
    """Samples to generate, or how many of a file's to use, from the first on."""
    resolution: Count | None = None
    """Cells per axis: generated so, or every n-th cell of a file's finer grid."""
    stride_time: Count = 1
    """Keep every n-th frame of a file."""
    history: Count | None = None
    """Frames that the operator sees."""
    horizon: Count | None = None
    """Frames that are predicted and scored."""
    observed_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Share of the cells of each trajectory's targets that the loss sees; units still come from all cells."""
    log_positive: bool = False
    """Whether fields that cannot be zero or below are scaled by their logarithm."""
    memory_gigabytes: Annotated[float, Field(ge=0.0)] = 4.0
    """Fields of a file up to this size are held in memory; reading here and there from disk is far slower."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of generation, split and observed cells."""
    split: SplitSettings | None = None
    """Shares of training, validation, calibration and test."""


@dataclass(frozen=True)
class Prepared:
    """Samples with their split and the units of the training part."""

    task: Task
    choices: DataSettings
    trajectories: Trajectories
    split: Split
    units: Units

    @property
    def history(self) -> int:
        """Frames that the operator sees."""
        return self.choices.history or self.task.history

    @property
    def horizon(self) -> int:
        """Frames that are predicted and scored: as asked, else the task's or as many as there are."""
        left = 1 if self.trajectories.steady else len(self.trajectories.times) - self.history
        return self.choices.horizon or min(self.task.horizon, left)

    def windows(self, part: str, horizon: int = 1, starts: Starts = "all") -> Windows:
        """Windows of a part of the split; only those of the training part are observed in part."""
        choices = WindowSettings(
            history=self.history,
            horizon=horizon,
            starts=starts,
            observed_fraction=self.choices.observed_fraction if part == "train" else 1.0,
            observed_seed=self.choices.seed,
        )
        return Windows(self.trajectories, self.split.part(part), choices)


def prepare(task: str, choices: DataSettings | None = None, progress: Progress | None = None) -> Prepared:
    """Obtain, check, split and measure the samples of a task; nothing is written."""
    choices = DataSettings() if choices is None else choices
    entry = task_named(task)
    trajectories = obtain(entry, choices, progress)
    require_finite(trajectories, choices.path or task)
    split = split_trajectories(trajectories, choices.split or entry.split, choices.seed)
    units = fit_units(trajectories, split.train, log_positive=choices.log_positive)
    return Prepared(entry, choices, trajectories, split, units)


def obtain(task: Task, choices: DataSettings, progress: Progress | None = None) -> Trajectories:
    """The samples that the choices name: read from their file, or generated."""
    if choices.path is None and task.equation is not None:
        samples = choices.num_samples or GENERATED_SAMPLES
        # Single precision, as batches are: half the memory of what the solver gives.
        return generate(task.name, samples, choices.resolution, choices.seed, dtype=np.float32, progress=progress)
    return _hold(find(task, choices), choices.memory_gigabytes)


def find(task: Task, choices: DataSettings) -> Trajectories:
    """The samples of a file as far as they are used, most of them unread."""
    found = load_climate(choices.path) if task.equation is None else _read(task, choices)
    if found.task not in {"", task.name}:
        raise ConfigError(f"'{choices.path}' holds {found.task}, not {task.name}; name that task instead")
    return _first(found, choices.num_samples)


def _read(task: Task, choices: DataSettings) -> Trajectories:
    path = Path(str(choices.path))
    found = load_dataset(path, stride_time=choices.stride_time, mapping=choices.mapping)
    if choices.resolution is None or set(found.grid.shape) == {choices.resolution}:
        return found
    strides = {size / choices.resolution for size in found.grid.shape}
    if len(strides) != 1 or not (stride := strides.pop()).is_integer() or stride < 1:
        raise ConfigError(
            f"'{path}' has {' x '.join(str(size) for size in found.grid.shape)} cells, of which every n-th "
            f"gives no {choices.resolution} per axis; choose a resolution that divides them"
        )
    return load_dataset(path, stride_time=choices.stride_time, stride_space=int(stride), mapping=choices.mapping)


def _first(trajectories: Trajectories, count: int | None) -> Trajectories:
    """The first samples of a set, unread where they are in a file."""
    if count is None or count == trajectories.num_samples:
        return trajectories
    if count > trajectories.num_samples:
        raise ConfigError(f"num_samples {count} is more than the {trajectories.num_samples} of the file")

    def cut(array: Array) -> Array:
        return array.narrow(slice(count)) if isinstance(array, LazyArray) else np.asarray(array[:count])

    return replace(
        trajectories,
        values=cut(trajectories.values),
        inputs=None if trajectories.inputs is None else cut(trajectories.inputs),
        params=None if trajectories.params is None else trajectories.params[:count],
    )


def _hold(trajectories: Trajectories, gigabytes: float) -> Trajectories:
    """Read fields into memory where they fit."""

    def read(array: Array) -> Array:
        fits = isinstance(array, LazyArray) and array.nbytes <= gigabytes * 1e9
        return np.asarray(array) if fits else array

    inputs = None if trajectories.inputs is None else read(trajectories.inputs)
    return replace(trajectories, values=read(trajectories.values), inputs=inputs)
