"""A cell: one model, trained once on one case, and the file that its record is kept in."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from experiments.scales import Case, case_named, scale_named
from spectrakan.config import as_mapping
from spectrakan.data.prepare import NO_TEST
from spectrakan.data.problems import Problem
from spectrakan.errors import ConfigError
from spectrakan.models.catalog import VARIANTS
from spectrakan.training import RunSettings, resolve


@dataclass(frozen=True)
class Cell:
    """What is trained: a model on a case with a seed, and what differs from the preset of its scale.

    `overrides` are texts such as `model.width=16`; `label` tells cells apart that differ in nothing else that their
    name shows. Without `test` the cell ends with its validation scores, and no test sample is read. A `variant` that
    the catalog of models does not have is the name of an ablation: its settings are among the overrides.

    >>> Cell("main", "short", "darcy2d", "fno", seed=2).file
    PosixPath('short/main/darcy2d-fno-default-s2.json')
    """

    table: str
    scale: str
    case: str
    model: str
    variant: str = "default"
    seed: int = 0
    overrides: tuple[str, ...] = ()
    label: str = ""
    test: bool = True

    def __post_init__(self) -> None:
        for text in (self.table, self.case, self.model, self.variant, self.label):
            if not re.fullmatch(r"[\w.+=]*", text):
                raise ConfigError(f"'{text}' cannot be part of a file name; use letters, digits and . + = _")

    @property
    def name(self) -> str:
        """The cell in one word."""
        ending = f"-{self.label}" if self.label else ""
        return f"{self.case}-{self.model}-{self.variant}-s{self.seed}{ending}"

    @property
    def file(self) -> Path:
        """Path of its record below the results."""
        return Path(self.scale) / self.table / f"{self.name}.json"

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes the cell again."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Cell:
        """The cell that `to_json` described."""
        return cls(**{**document, "overrides": tuple(document["overrides"])})


def run_settings(cell: Cell, data_path: str | None = None) -> RunSettings:
    """The config of a cell: the preset of its problem, model and budget, with the overrides of case and cell.

    Training never has the test samples: generated ones come from a seed of their own, and days of weather that the
    problem reserves for the test are set aside under another name.
    """
    scale, case = scale_named(cell.scale), case_named(cell.case)
    variant = cell.variant if cell.variant in VARIANTS.get(cell.model, {}) else "default"
    given = {
        "task": case.problem_name,
        "budget": scale.name,
        "data": {"test_samples": 0, "split": _without_test(case.problem)},
        "model": {"name": cell.model, "variant": variant},
        "runtime": {**scale.runtime, "seed": cell.seed},
    }
    own = [*case.overrides_at(scale.name), *case.rate_of(cell.model, variant)]
    config = resolve(given, [*own, *cell.overrides]).config
    # The path is set last: a run of a file would otherwise get its epochs from the file's windows.
    return replace(config, data=replace(config.data, path=data_path))


def case_settings(scale: str, case: str) -> RunSettings:
    """The config of a case, as far as it is the same for all models; `test_samples` is the preset's."""
    entry: Case = case_named(case)
    return resolve({"task": entry.problem_name, "budget": scale}, entry.overrides_at(scale)).config


def _without_test(problem: Problem) -> dict[str, Any]:
    """The split of training data; training reads no part called calibration."""
    if problem.equation is not None:
        return as_mapping(NO_TEST)
    split = problem.split
    return as_mapping(replace(split, calibration=split.calibration + split.test, test=0.0))


def comparable(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without the file of its samples, which differs between machines and follows from the rest."""
    return {**config, "data": {**config.get("data", {}), "path": None}}


def record_key(config: Mapping[str, Any]) -> str:
    """Eight letters that change with any setting of a `comparable` config, so that a run's folder does too."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]


def as_overrides(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Settings as the texts that a cell takes.

    >>> as_overrides({"model.use_gml": False})
    ('model.use_gml=false',)
    """
    return tuple(f"{key}={json.dumps(value)}" for key, value in settings.items())
