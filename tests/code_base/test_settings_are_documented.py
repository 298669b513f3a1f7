"""Every setting of models, stages, runs and equations says in a line what it means."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from spectrakan.config import describe
from spectrakan.data.prepare import DataSettings
from spectrakan.data.problems import PROBLEMS
from spectrakan.data.split import SplitSettings
from spectrakan.fields import OperatorSignature
from spectrakan.models.catalog import MODELS, VARIANTS, build_model
from spectrakan.models.stages import Stages
from spectrakan.theory.control import LipschitzSettings
from spectrakan.training import RunSettings, RuntimeSettings, TrainingSettings

RUN_GROUPS = (
    RunSettings, DataSettings, SplitSettings, TrainingSettings, LipschitzSettings, RuntimeSettings
)  # fmt: skip
CLASSES = {
    **{f"model {name}": entry.config for name, entry in MODELS.items()},
    **{f"run {cls.__name__}": cls for cls in RUN_GROUPS},
    **{f"equation {name}": entry.equation.parameters for name, entry in PROBLEMS.items() if entry.equation},
    "stages": Stages,
}
MOST_SETTINGS = {"spectrakan": 24, "amfno": 24}
MOST_STAGES = 6
GROUP_FIELDS = ("data", "model", "training", "runtime")
"""Settings of a run that are groups of others; the class of a group explains it."""


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_each_field_has_a_docstring(cls):
    meanings = describe(cls)
    assert meanings.keys() == {field.name for field in dataclasses.fields(cls)}
    assert not [field for field, meaning in meanings.items() if not meaning and field not in GROUP_FIELDS]


@pytest.mark.parametrize("name", MOST_SETTINGS)
def test_a_model_has_few_settings(name):
    assert len(dataclasses.fields(MODELS[name].config)) <= MOST_SETTINGS[name]
    assert len(dataclasses.fields(Stages)) <= MOST_STAGES


def test_the_table_of_notation_is_the_settings_class():
    text = (Path(__file__).resolve().parents[2] / "docs" / "notation.md").read_text()
    table = dict(re.findall(r"^\|[^|]*\| `(\w+)` \| ([\w.]+) \|", text, flags=re.MULTILINE))
    settings = [*dataclasses.fields(MODELS["spectrakan"].config), *dataclasses.fields(Stages)]
    assert table == {field.name: str(field.default) for field in settings}


def test_the_departures_are_the_variant_of_the_paper():
    text = (Path(__file__).resolve().parents[2] / "docs" / "notation.md").read_text()
    section = text.split("## Where we depart")[1].split("## ")[0]
    paper = {f"{key}={value!r}".replace("'", '"') for key, value in VARIANTS["spectrakan"]["paper"].items()}
    assert set(re.findall(r"^\|[^|]*\| `([^`]*)` \|", section, flags=re.MULTILINE)) == paper


@pytest.mark.parametrize(("name", "variant"), [(name, variant) for name in VARIANTS for variant in VARIANTS[name]])
def test_each_variant_can_be_built(name, variant):
    signature = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1)
    assert build_model(name, signature, variant=variant).name == name
