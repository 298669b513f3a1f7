"""The samples of a campaign: obtained from the library, kept in the cache, test samples apart from all others."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.archive import Archive
from experiments.cells import Cell, case_settings, run_settings
from experiments.scales import DEVELOPMENT_SEED, case_named, scale_named
from spectrakan.config import as_mapping
from spectrakan.data.files import held, load_dataset, write_dataset
from spectrakan.data.prepare import DataSettings, obtain
from spectrakan.data.problems import Problem
from spectrakan.data.split import split_trajectories
from spectrakan.errors import ConfigError
from spectrakan.evaluation.stability import FACTOR
from spectrakan.fields import Trajectories
from spectrakan.runs import data_digest

GENERATING = (
    "num_samples",
    "resolution",
    "solved_at",
    "frames",
    "stride_time",
    "fields",
    "params",
    "use_params",
    "seed",
)
"""Data settings that fix generated samples."""


@dataclass(frozen=True)
class TestSet:
    """Trajectories, and which samples of them are the test."""

    __test__ = False  # not a class of tests

    trajectories: Trajectories
    samples: Sequence[int]
    sha256: str


class Datasets:
    """Training, development and test samples of a scale; its ledger notes when test samples are made and read."""

    def __init__(self, archive: Archive) -> None:
        self.scale, self.folder, self.ledger = scale_named(archive.scale), archive.cache / "data", archive.ledger

    def training_file(self, cell: Cell) -> Path | None:
        """The file of a cell's training and validation samples, made if it is missing; None: the problem has them."""
        problem, wanted = case_named(cell.case).problem, self._training(cell)
        return None if wanted is None else self._made(problem, "train", wanted)

    def missing_file(self, cell: Cell) -> Path | None:
        """The file of a cell's training samples, if it has yet to be made."""
        wanted = self._training(cell)
        path = None if wanted is None else self._path(case_named(cell.case).problem, "train", wanted)
        return None if path is None or path.is_file() else path

    def _training(self, cell: Cell) -> DataSettings | None:
        """What the file of a cell holds: every frame, because a run reads each n-th of a file as its settings say.

        A cell with fewer samples than the preset reads the first ones of the whole set.
        """
        if case_named(cell.case).problem.equation is None:
            return None
        data = run_settings(cell).data
        whole = case_settings(cell.scale, cell.case).data.num_samples
        return replace(
            data,
            num_samples=max(data.num_samples or 0, whole or 0),
            frames=None if data.frames is None else (data.frames - 1) * data.stride_time + 1,
            stride_time=1,
        )

    def development(self, case: str) -> Trajectories | None:
        """Twice as many samples as the test has, of a seed that is neither the test's nor that of training."""
        problem, data = case_named(case).problem, self._test_settings(case)
        if problem.equation is None:
            return None
        wanted = replace(data, seed=DEVELOPMENT_SEED, num_samples=2 * (data.num_samples or 1))
        return load_dataset(self._made(problem, "development", wanted))

    def test(self, case: str, reader: str, *, resolution: int | None = None, longer: bool = False) -> TestSet:
        """The test samples, at another resolution or five times as long if asked for; the ledger names `reader`.

        Sample i starts from the same state in all of them.
        """
        problem, wanted = case_named(case).problem, self._test_settings(case)
        if problem.equation is None:
            return self._reserved_days(case, problem, reader)
        if resolution is not None:
            wanted = replace(wanted, resolution=resolution)
        if longer:
            count = min(self.scale.long_samples, wanted.num_samples or 1)
            wanted = replace(wanted, num_samples=count, frames=longer_frames(problem, self._case_data(case)))
        return self._noted(
            problem, "long" if longer else "test" if resolution is None else f"test{resolution}", wanted, reader
        )

    def other_test(self, case: str, reader: str, kind: str, changes: Mapping[str, Any]) -> TestSet:
        """Samples of the test's seed with other data settings: parameters, time step, number of samples."""
        problem, wanted = case_named(case).problem, replace(self._test_settings(case), **changes)
        return self._noted(problem, kind, wanted, reader)

    def _noted(self, problem: Problem, kind: str, wanted: DataSettings, reader: str) -> TestSet:
        """Test samples, made if they are missing; the ledger has both."""
        path = self._made(problem, kind, wanted, noted=True)
        found = held(load_dataset(path), float("inf"))
        digest = data_digest(found)
        self.ledger.write("read", set=path.stem, sha256=digest, reader=reader)
        return TestSet(found, range(found.num_samples), digest)

    def _case_data(self, case: str) -> DataSettings:
        return case_settings(self.scale.name, case).data

    def _test_settings(self, case: str) -> DataSettings:
        data = self._case_data(case)
        return replace(
            data,
            seed=self.scale.test_seed,
            num_samples=self.scale.test_samples or data.test_samples or None,
            frames=scored_frames(case_named(case).problem, data),
        )

    def _reserved_days(self, case: str, problem: Problem, reader: str) -> TestSet:
        """The test part of the problem's own split."""
        data = self._case_data(case)
        days = obtain(problem, data)
        samples = split_trajectories(days, problem.split, data.seed).test
        digest = data_digest(days)
        self.ledger.write("read", set=f"{case}-days-{samples[0]}-{samples[-1]}", sha256=digest, reader=reader)
        return TestSet(days, samples, digest)

    def _path(self, problem: Problem, kind: str, wanted: DataSettings) -> Path:
        mapping = as_mapping(wanted)
        text = json.dumps([problem.name, *(mapping[key] for key in GENERATING)])
        return self.folder / f"{problem.name}-{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.h5"

    def _made(self, problem: Problem, kind: str, wanted: DataSettings, *, noted: bool = False) -> Path:
        """The file of these samples, solved unless it exists; `noted` writes that into the ledger."""
        path = self._path(problem, kind, wanted)
        with _alone(path):
            if not path.is_file():
                made = obtain(problem, replace(wanted, path=None))
                write_dataset(path, made)
                if noted:
                    entries = {"seed": wanted.seed, "samples": made.num_samples, "sha256": data_digest(made)}
                    self.ledger.write("generated", set=path.stem, **entries)
        return path


def scored_frames(problem: Problem, data: DataSettings) -> int | None:
    """Frames of a test sample: those of the case, or as many as the last time takes that is scored."""
    if data.frames is None or not problem.scored_times or problem.equation is None:
        return data.frames
    own = problem.equation.times[:: data.stride_time]
    return max(data.frames, sum(time <= max(problem.scored_times) + 1e-9 for time in own))


def longer_frames(problem: Problem, data: DataSettings) -> int:
    """Frames of a sample that goes on for five horizons after its history."""
    if problem.steady:
        raise ConfigError(f"{problem.name} is steady: it has no horizon to go beyond")
    frames = data.frames or -(-problem.frames // data.stride_time)
    history = data.history or problem.history
    return history + FACTOR * min(problem.horizon, frames - history)


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
