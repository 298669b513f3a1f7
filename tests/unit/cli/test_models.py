"""The list of models: every model at every task's size, and costs as ratios."""

from __future__ import annotations

import pytest
import torch

import spectrakan as sk
from spectrakan.cli.models import TASKS, aligned, measured_rows, models
from spectrakan.evaluation.recorded_costs import RECORDED_COSTS, RECORDED_TASKS
from spectrakan.models import MODELS
from spectrakan.models.abilities import ABILITIES


def test_every_model_is_listed_with_its_parameters_at_every_size(capsys):
    state = torch.random.get_rng_state()
    models(variant="small")
    assert torch.equal(torch.random.get_rng_state(), state), "listing draws from no one's generator"
    lines = capsys.readouterr().out.splitlines()
    assert lines[2 + len(MODELS) :] == ["", "Costs are recorded for the default sizes; add --measure to time these."]
    table = {line.split()[0]: line.split() for line in lines[2 : 2 + len(MODELS)]}
    assert list(table) == list(MODELS)
    for name, words in table.items():
        assert " ".join(words[7:10]) == "1D, 2D, 3D"
        assert " ".join(words[10:]) == f"{ABILITIES[name].refinement} {ABILITIES[name].reads}"
    head = lines[1].split()
    assert head[1:7] == list(TASKS)
    signature, _ = TASKS["darcy2d"]
    model = sk.build_model("deeponet", signature, variant="small")
    expected = sum(parameter.numel() for parameter in model.parameters())
    assert table["deeponet"][head.index("darcy2d")] == f"{expected:,}"
    assert table["ridge"][1:7] == ["0"] * 6


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_takes_the_dimensions_that_the_list_says(name):
    for dims in ABILITIES[name].space_dims:
        variant = "small" if name not in {"spectrakan", "amfno", "persistence", "climatology", "ridge"} else "default"
        facts = sk.OperatorSignature(space_dims=dims, history=1, in_channels=1, out_channels=1)
        model = sk.build_model(name, facts, variant=variant)
        with torch.no_grad():
            answers = [model(torch.randn(1, 1, *[cells] * dims, 1)) for cells in (8, 11)]
        assert all(bool(torch.isfinite(answer).all()) for answer in answers)


def test_costs_are_ratios_to_the_reference(monkeypatch):
    seconds = {"persistence": 0.5, "deeponet": 2.0}
    monkeypatch.setattr("spectrakan.cli.models.step_seconds", lambda model, space: seconds[model.name] * len(space))
    rows = measured_rows(["persistence", "deeponet"], "small", reference="persistence")
    assert rows == [["model", *TASKS], ["persistence", *["1.00"] * 6], ["deeponet", *["4.00"] * 6]]


def test_recorded_costs_are_listed_for_every_model_and_task(capsys):
    assert tuple(TASKS) == RECORDED_TASKS
    assert list(RECORDED_COSTS) == list(MODELS)
    models()
    _, costs = capsys.readouterr().out.split("CPU time of a training step over that of fno, as recorded")
    table = {line.split()[0]: line.split()[1:] for line in costs.splitlines()[1:]}
    assert table.pop("model") == list(TASKS)
    assert table["fno"] == ["1"] * 6
    assert {name: tuple(map(float, row)) for name, row in table.items()} == RECORDED_COSTS


@pytest.mark.slow
def test_recorded_costs_are_those_of_this_code():
    """Ratios differ between machines, but not by a factor of three: then the code has changed, and so must they."""
    for row in measured_rows(list(MODELS), "default")[1:]:
        recorded = RECORDED_COSTS[row[0]]
        ratios = [float(cell) / cost for cell, cost in zip(row[1:], recorded, strict=True) if cost >= 0.2]
        assert all(1 / 3 < ratio < 3 for ratio in ratios), (row, recorded)


def test_numbers_stand_to_the_right_and_words_to_the_left():
    assert aligned([["a", "size"], ["long", "1,000"], ["b", "7"]]) == "a      size\nlong  1,000\nb         7"
