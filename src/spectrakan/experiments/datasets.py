"""The samples of a campaign: made once, kept in the cache, test samples apart from all others."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spectrakan.data.catalog import task as task_named
from spectrakan.data.climate import load_climate
from spectrakan.data.generate import generate_lazily
from spectrakan.data.load import load_dataset
from spectrakan.data.write import write_dataset
from spectrakan.errors import ConfigError
from spectrakan.evaluation.evaluate import coarsen
from spectrakan.experiments.ledger import Ledger
from spectrakan.experiments.scales import DEVELOPMENT_SEED, TRAIN_SEED, Case, Scale
from spectrakan.fields import Trajectories
from spectrakan.runs import data_digest

LONGER = 5
"""How many times the horizon a test of stability goes."""
CHUNK_CELLS = 2**16
"""Cells that are solved at once: enough to pay for the steps of a solver, few enough for any memory."""


@dataclass(frozen=True)
class SampleSet:
    """What fixes a generated set: everything but the number of its name."""

    case: Case
    seed: int
    num_samples: int
    frames: int | None
    resolution: int | None

    @property
    def key(self) -> str:
        """Eight letters that change with anything that changes the samples."""
        case = self.case
        facts = [case.task, self.seed, self.num_samples, self.frames, self.resolution, case.stride, case.fields]
        return hashlib.sha256(json.dumps([*facts, *filter(None, [case.solved_at])]).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Scored:
    """Test samples, and which of them count."""

    trajectories: Trajectories
    samples: Sequence[int]
    sha256: str


class Datasets:
    """Training and test samples of a scale's cases, under a folder of the cache.

    `ledger` is told whenever test samples are made or read.
    """

    def __init__(self, scale: Scale, cache: Path, ledger: Ledger) -> None:
        self.scale, self.folder, self.ledger = scale, cache / "data", ledger

    def training_file(self, name: str) -> Path | None:
        """The file of training and validation samples, made if it is not there; None: they come with the package."""
        found = self._training(name)
        if found is None:
            return None
        path, wanted = found
        with _alone(path):
            if not path.is_file():
                write_dataset(path, _make(wanted))
        return path

    def lacks(self, name: str) -> bool:
        """Whether training samples of a case have yet to be made."""
        found = self._training(name)
        return found is not None and not found[0].is_file()

    def _training(self, name: str) -> tuple[Path, SampleSet] | None:
        case = self.scale.cases[name]
        if task_named(case.task).equation is None:
            return None
        wanted = SampleSet(case, TRAIN_SEED, case.num_samples, case.frames, case.resolution)
        return self.folder / f"{name}-train-{wanted.key}.h5", wanted

    def development(self, name: str) -> Trajectories | None:
        """Twice as many samples as the test has, of a seed that is neither its own nor that of training."""
        case = self.scale.cases[name]
        if task_named(case.task).equation is None:
            return None
        count = 2 * case.test_samples
        wanted = SampleSet(case, DEVELOPMENT_SEED, count, scored_frames(case), case.resolution)
        path = self.folder / f"{name}-development-{wanted.key}.h5"
        with _alone(path):
            if not path.is_file():
                write_dataset(path, _make(wanted))
        return load_dataset(path)

    def test(self, name: str, reader: str, *, resolution: int | None = None, longer: bool = False) -> Scored:
        """The final test samples, at another resolution or five times as long if asked for; `reader` is written down.

        Sample i starts from the same state in all of them.
        """
        case = self.scale.cases[name]
        if task_named(case.task).equation is None:
            return self._last_days(name, case, reader)
        frames = longer_frames(case) if longer else scored_frames(case)
        count = min(case.long_samples, case.test_samples) if longer else case.test_samples
        wanted = SampleSet(case, case.test_seed, count, frames, resolution or case.resolution)
        kind = "long" if longer else "test" if resolution is None else f"test{resolution}"
        path = self.folder / f"{name}-{kind}-{wanted.key}.h5"
        with _alone(path):
            if not path.is_file():
                made = write_dataset(path, _make(wanted))
                facts = {"seed": case.test_seed, "samples": count, "sha256": data_digest(load_dataset(made))}
                self.ledger.write("generated", set=path.stem, **facts)
        found = load_dataset(path)
        held = replace(found, values=np.asarray(found.values), inputs=_held(found.inputs))
        digest = data_digest(held)
        self.ledger.write("read", set=path.stem, sha256=digest, reader=reader)
        return Scored(held, range(held.num_samples), digest)

    def _last_days(self, name: str, case: Case, reader: str) -> Scored:
        """Days after those of training and validation and a gap: what a split by time reserves."""
        days = load_climate()
        first = case.num_samples + task_named(case.task).split.gap
        samples = range(first, min(first + case.test_samples, days.num_samples))
        digest = data_digest(days)
        self.ledger.write("read", set=f"{name}-days-{first}-{samples.stop}", sha256=digest, reader=reader)
        return Scored(days, samples, digest)


def scored_frames(case: Case) -> int | None:
    """Frames of a test sample: those of the case, or as many as the last time takes that the paper scores."""
    entry = task_named(case.task)
    if case.frames is None or not entry.scored_times or entry.equation is None:
        return case.frames
    own = entry.equation.times[:: case.stride]
    needed = sum(time <= max(entry.scored_times) + 1e-9 for time in own)
    return max(case.frames, needed)


def longer_frames(case: Case) -> int:
    """Frames of a sample that goes on for five horizons after its history."""
    entry = task_named(case.task)
    if entry.steady:
        raise ConfigError(f"{case.task} is steady: it has no horizon to go beyond")
    history = entry.history
    ahead = min(entry.horizon, (case.frames or entry.frames) - history)
    return history + LONGER * ahead


def _make(wanted: SampleSet) -> Trajectories:
    """Solve a few samples at a time, keeping only the frames and fields that the case asks for, on its cells."""
    case = wanted.case
    stride = case.stride
    solved = None if wanted.frames is None else (wanted.frames - 1) * stride + 1
    cells = case.solved_at or wanted.resolution
    lazy = generate_lazily(case.task, wanted.num_samples, cells, wanted.seed, frames=solved)
    names = [spec.name for spec in lazy.fields]
    if unknown := [name for name in case.fields if name not in names]:
        raise ConfigError(f"{case.task} has the fields {', '.join(names)}, not {', '.join(unknown)}")
    kept = [index for index, name in enumerate(names) if not case.fields or name in case.fields]
    chunk = max(8, CHUNK_CELLS // math.prod(lazy.grid.shape))
    parts = [
        np.asarray(lazy.values[begin : begin + chunk])[:, ::stride][..., kept].astype(np.float32)
        for begin in range(0, wanted.num_samples, chunk)
    ]
    inputs = None if lazy.inputs is None else np.asarray(lazy.inputs[:], np.float32)
    made = replace(
        lazy,
        values=np.concatenate(parts),
        inputs=inputs,
        times=lazy.times[::stride],
        fields=tuple(lazy.fields[index] for index in kept),
        # Who solves them anew from their origin would get frames or fields that were dropped here.
        origin=lazy.origin if stride == 1 and not case.fields else {},
    )
    return made if wanted.resolution in (None, cells) else coarsen(made, wanted.resolution)


def _held(array: Any) -> Any:
    return None if array is None else np.asarray(array)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process makes this file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
