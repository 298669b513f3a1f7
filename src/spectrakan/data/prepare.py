"""From a problem or a file to what training needs: trajectories, and the parts of their split."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field

from spectrakan.config import Count, settings
from spectrakan.data.check import require_finite, require_resolved
from spectrakan.data.files import every_cell, held, load_dataset
from spectrakan.data.generate import generate, in_memory
from spectrakan.data.problems import Problem, find_problem, problem_named
from spectrakan.data.regenerate import coarsen
from spectrakan.data.split import PARTS, Split, SplitSettings, split_trajectories
from spectrakan.data.windows import Starts, Windows, WindowSettings, signature
from spectrakan.errors import ConfigError
from spectrakan.fields import Boundary, OperatorSignature, Progress, SpaceGroup, Trajectories

GENERATED_SAMPLES = 100
"""Samples that are made where neither a file nor a number is given."""
NO_TEST = SplitSettings(train=0.9, validation=0.1, test=0.0)
"""The split of training data whose test data lie elsewhere."""


@settings
class DataSettings:
    """Where samples come from and how they are cut; what is not given is the problem's."""

    path: str | None = None
    """File to read; without it samples are generated, or come with the problem."""
    mapping: dict[str, Any] | None = None
    """What the arrays of a foreign file mean: fields, axes, coordinates (`spectrakan check --help`)."""
    test_path: str | None = None
    """File of test samples; the split of the other samples then has no test part."""
    num_samples: Count | None = None
    """Samples to generate, or how many of a file's to use, from the first on."""
    test_samples: Annotated[int, Field(ge=0)] = 0
    """Test samples that are generated apart, from `test_seed`; 0: the test part of the split."""
    test_seed: Annotated[int, Field(ge=0)] = 1
    """Seed of test samples that are generated apart."""
    resolution: Count | None = None
    """Cells per axis: generated so, or every n-th cell of a file's finer grid."""
    solved_at: Count | None = None
    """Cells per axis of the solver's grid, whose solution is averaged onto `resolution`; unset: the same."""
    frames: Count | None = None
    """Frames that are kept of each sample, from the first on."""
    stride_time: Count = 1
    """Keep every n-th frame."""
    fields: tuple[str, ...] = ()
    """Fields that are kept; empty: all."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the equation for generated samples; a pair [low, high] is drawn for each sample."""
    use_params: bool = True
    """Whether the operator receives the parameters that differ from sample to sample."""
    boundary: tuple[Boundary, ...] = ()
    """What happens at the ends of each axis, where a file does not say; one word for each axis."""
    history: Count | None = None
    """Frames that the operator sees."""
    horizon: Count | None = None
    """Frames that are predicted and scored."""
    strides: tuple[Count, ...] = (1,)
    """Frames from one frame of a training window to the next; several need dt_input=true."""
    dt_input: bool = False
    """Whether the time step is one more parameter of the operator, called `dt`."""
    memory_gigabytes: Annotated[float, Field(ge=0.0)] = 4.0
    """Fields of a file up to this size are held in memory; random access on disk is far slower."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of generation and split."""
    split: SplitSettings | None = None
    """Shares of training, validation, calibration and test, and how they are cut."""


@dataclass(frozen=True)
class Part:
    """Samples of one part of a split."""

    trajectories: Trajectories
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Prepared:
    """Trajectories with their split; parts may lie in trajectories of their own (a test file, a cut in time)."""

    problem: Problem
    config: DataSettings
    trajectories: Trajectories
    split: Split
    history: int
    horizon: int
    """Frames that are predicted and scored."""
    parts: Mapping[str, Part]
    dtype: torch.dtype = torch.float32

    def windows(self, part: str, horizon: int = 1, starts: Starts = "all") -> Windows:
        """Windows of a part of the split; only training windows have several strides."""
        config = WindowSettings(
            history=self.history,
            horizon=horizon,
            strides=self.config.strides if part == "train" else (1,),
            dt_input=self.config.dt_input,
            starts=starts,
        )
        chosen = self.parts[part]
        return Windows(chosen.trajectories, chosen.samples, config, self.dtype)

    def signature(self) -> OperatorSignature:
        """What an operator on these data takes and gives."""
        return signature(self.trajectories, self.history, dt_input=self.config.dt_input)


def prepare(
    problem: str | Problem,
    config: DataSettings | None = None,
    progress: Progress | None = None,
    *,
    data: Trajectories | None = None,
    test_data: Trajectories | None = None,
    dtype: torch.dtype = torch.float32,
    space: SpaceGroup | None = None,
) -> Prepared:
    """Obtain, check and split the samples of a problem; nothing is written.

    `data` and `test_data` in memory take the place of what `config` names. With `space` this process has its part of
    each field, and reads no more of a file.
    """
    config = DataSettings() if config is None else config
    unread = config if space is None else replace(config, memory_gigabytes=0.0)

    def own(found: Trajectories) -> Trajectories:
        return found if space is None else held(found.cut(space), 1e9 * config.memory_gigabytes)

    entry = problem_named(problem) if isinstance(problem, str) else problem
    storage = np.float64 if dtype == torch.float64 else np.float32
    found = own(obtain(entry, unread, progress, storage) if data is None else trimmed(data, config))
    require_finite(found, config.path or entry.name)
    if dtype == torch.float32:
        require_resolved(found)
    tests = test_data if test_data is not None else obtain_test(entry, unread, storage)
    tests = None if tests is None else own(tests)
    shares = config.split or (entry.split if tests is None else NO_TEST)
    split = split_trajectories(found, shares, config.seed)
    if tests is not None:
        if len({replace(signature(each, 1), boundary=()) for each in (found, tests)}) > 1:
            raise ConfigError(f"test data differ in kind from the others: {tests.summary} beside {found.summary}")
        require_finite(tests, config.test_path or f"{entry.name} (test)")
    history = config.history or (1 if found.steady else entry.history)
    horizon = _horizon(entry, config, found, split, history)
    parts = {name: _part(name, found, split, history + horizon) for name in PARTS}
    if tests is not None:
        parts["test"] = Part(tests, tuple(range(tests.num_samples)))
    return Prepared(entry, config, found, split, history, horizon, parts, dtype)


def obtain(
    problem: Problem, config: DataSettings, progress: Progress | None = None, dtype: npt.DTypeLike = np.float32
) -> Trajectories:
    """The samples that the settings name: read from their file, or solved for, a few at a time.

    Of solved samples only the frames, fields and cells asked for are kept.
    """
    if config.path is not None or problem.equation is None:
        return held(find(problem, config), 1e9 * config.memory_gigabytes)
    lazy = generate(
        problem.name,
        config.num_samples or GENERATED_SAMPLES,
        config.solved_at or config.resolution,
        config.seed,
        frames=None if config.frames is None else (config.frames - 1) * config.stride_time + 1,
        params=config.params,
        dtype=None,
        progress=progress,
    )
    kept = replace(config, num_samples=None, resolution=config.resolution if config.solved_at else None)
    return in_memory(lazy, lambda part: trimmed(part, kept), dtype)


def obtain_test(problem: Problem, config: DataSettings, dtype: npt.DTypeLike = np.float32) -> Trajectories | None:
    """Test samples that lie apart from the others, if the settings name any."""
    if config.test_path is not None:
        return obtain(problem, replace(config, path=config.test_path, num_samples=None), dtype=dtype)
    if config.test_samples and config.path is None and problem.equation is not None:
        return obtain(problem, replace(config, num_samples=config.test_samples, seed=config.test_seed), dtype=dtype)
    return None


def find(problem: Problem | None, config: DataSettings) -> Trajectories:
    """The samples of a file, or those that come with the problem, as far as they are used, most of them unread."""
    if problem is not None and problem.held is not None and config.path is None:
        return trimmed(problem.held, config)
    if problem is not None and problem.load is not None and config.mapping is None:
        return trimmed(problem.load(config.path), config)
    if config.path is None:
        name = "this problem" if problem is None else f"'{problem.name}'"
        raise ConfigError(f"{name} has no solver and no data of its own; give data.path (--data FILE)")
    found = load_dataset(config.path, mapping=config.mapping, most_bytes=1e9 * config.memory_gigabytes)
    other = problem is not None and found.name != problem.name and find_problem(found.name) is not None
    if problem is not None and other and not config.mapping:
        raise ConfigError(f"'{config.path}' holds {found.name}, not {problem.name}; name that problem instead")
    if config.resolution is not None:
        strides = {size / config.resolution for size in found.grid.shape}
        if len(strides) != 1 or not (stride := strides.pop()).is_integer():
            cells = " x ".join(str(size) for size in found.grid.shape)
            raise ConfigError(
                f"'{config.path}' has {cells} cells, of which every n-th gives no {config.resolution} per axis; "
                "choose a resolution that divides them"
            )
        found = every_cell(found, int(stride))
    return trimmed(found, replace(config, resolution=None))


def trimmed(data: Trajectories, config: DataSettings) -> Trajectories:
    """The samples, frames and fields of a set that the settings keep, with the boundary they name."""
    if config.boundary:
        data = replace(data, grid=replace(data.grid, boundary=config.boundary))
    if config.num_samples is not None and config.num_samples > data.num_samples:
        raise ConfigError(f"num_samples {config.num_samples} is more than the {data.num_samples} there are")
    if config.num_samples is not None and config.num_samples < data.num_samples:
        data = data.select(slice(config.num_samples))
    if not data.steady and config.stride_time > 1:
        data = data.every(config.stride_time)
    if not data.steady and config.frames is not None and config.frames < len(data.times):
        data = data.between(0, config.frames)
    if config.fields and config.fields != tuple(spec.name for spec in data.fields):
        data = data.only_fields(config.fields)
    if config.resolution is not None and set(data.grid.shape) != {config.resolution}:
        data = coarsen(data, config.resolution)
    return data if config.use_params else replace(data, params=None, param_names=())


def _horizon(problem: Problem, config: DataSettings, data: Trajectories, split: Split, history: int) -> int:
    """As asked, else the problem's as far as there are frames; a split in time leaves room for several windows."""
    if data.steady:
        return 1
    if config.horizon or not split.frames:
        return config.horizon or max(1, min(problem.horizon, len(data.times) - history))
    shortest = min(stop - start for start, stop in split.frames.values())
    return max(1, min(2 * history, problem.horizon, shortest - history))


def _part(name: str, data: Trajectories, split: Split, length: int) -> Part:
    """One part; of a split in time its frames, cut into windows one behind the other unless it is for training."""
    samples = split.part(name)
    if name not in split.frames:
        return Part(data, samples)
    start, stop = split.frames[name]
    if name == "train":
        return Part(data.between(start, stop), samples)
    if stop - start < length:
        raise ConfigError(
            f"the part '{name}' has {stop - start} frames, history and horizon take {length}; lower data.history or "
            "data.horizon, or give the part a larger share"
        )
    cut = data.between(start, stop).windows_in_time(length)
    return Part(cut, tuple(range(cut.num_samples)))
