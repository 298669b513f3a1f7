"""A cell: one model, trained once on one case, and the file that its record is kept in."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spectrakan.data.catalog import task as task_named
from spectrakan.errors import ConfigError
from spectrakan.experiments.scales import TRAIN_SEED, Case, Scale, case_named, scale_named
from spectrakan.experiments.sizes import TASK_CHOICES, size_choices
from spectrakan.training import RunSettings, resolve

CATALOG_VARIANTS = ("default", "paper")
"""Variants that the catalog of models knows; any other name is an ablation of the default."""


@dataclass(frozen=True)
class Cell:
    """What is trained: a model on a case with a seed, and what differs from the recipe of the case.

    `choices` are texts such as `model.width=16`; `label` tells cells apart that differ in nothing else that their
    name shows. Without `test` the cell ends with its validation scores, and no test sample is read.

    >>> Cell("main", "small", "darcy2d", "fno", seed=2).file
    PosixPath('small/main/darcy2d-fno-default-s2.json')
    """

    table: str
    scale: str
    case: str
    model: str
    variant: str = "default"
    seed: int = 0
    choices: tuple[str, ...] = ()
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
        """Where its record lies among the results."""
        return Path(self.scale) / self.table / f"{self.name}.json"

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes the cell again."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Cell:
        """The cell that `to_json` described."""
        return cls(**{**document, "choices": tuple(document["choices"])})


def run_settings(cell: Cell, data_path: str | None) -> RunSettings:
    """The whole config of a cell: the recipe of its case, the size of its model, and its own choices."""
    scale = scale_named(cell.scale)
    case = case_named(scale, cell.case)
    base = cell.variant if cell.variant in CATALOG_VARIANTS else "default"
    model = {
        "name": cell.model,
        "variant": base,
        **size_choices(cell.model, case.task),
        **TASK_CHOICES.get((cell.model, cell.case), {}),
    }
    given = {
        "task": case.task,
        "data": _data(case, data_path),
        "model": model,
        "training": case.training,
        "runtime": {**scale.runtime, "seed": cell.seed},
    }
    return resolve(given, cell.choices)


def _data(case: Case, path: str | None) -> dict[str, Any]:
    """Nine of ten samples train, one of ten chooses the weights; the test lies elsewhere."""
    split: dict[str, Any] = {"train": 0.9, "validation": 0.1, "test": 0.0}
    ordered = task_named(case.task).split
    if ordered.time_ordered:
        split |= {"time_ordered": True, "gap": ordered.gap}
    return {"path": path, "num_samples": case.num_samples, "seed": TRAIN_SEED, "split": split}


def comparable(config: dict[str, Any]) -> dict[str, Any]:
    """A config without what depends on the machine: the folder of the data."""
    path = config["data"]["path"]
    data = {**config["data"], "path": None if path is None else Path(path).name}
    return {**config, "data": data}


def record_key(config: dict[str, Any]) -> str:
    """Eight letters that change with any choice of a `comparable` config, so that a run's folder does too."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]


def with_choices(cell_choices: tuple[str, ...], more: dict[str, Any]) -> tuple[str, ...]:
    """Choices of a cell with further ones, as texts."""
    return (*cell_choices, *(f"{key}={json.dumps(value)}" for key, value in more.items()))


def axes_of(scale: Scale, case: str) -> int:
    """How many axes of space a case has."""
    return len(task_named(case_named(scale, case).task).resolution)
