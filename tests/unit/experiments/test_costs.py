"""Costs: seconds of records beside FNO's, and steps taken in turns."""

from __future__ import annotations

import json

import torch

from experiments import costs
from experiments.archive import Archive
from experiments.cells import Cell
from experiments.costs import FILE, TrainingStep, measure_beside_fno, measure_steps, step_ratio
from spectrakan.report.table import Score


def test_every_model_of_every_case_is_measured_and_kept(archive: Archive):
    lines: list[str] = []
    times = measure_steps(archive, models=["spectrakan"], rounds=1, processes=1, tell=lines.append)
    assert set(times) == {"cns1d", "darcy2d", "shallow_water2d", "droplet2d"}
    assert all(set(found) == {"spectrakan", "fno"} and min(found.values()) > 0 for found in times.values())
    assert json.loads((archive.folder / FILE).read_text())["cpu_seconds"] == times
    assert step_ratio(archive, "cns1d", "spectrakan") == times["cns1d"]["spectrakan"] / times["cns1d"]["fno"]
    assert step_ratio(archive, "cns1d", "unet") is None
    assert step_ratio(archive, "elsewhere", "fno") is None
    assert len(lines) == 4


def test_measuring_leaves_the_threads_as_they_were():
    threads = torch.get_num_threads()
    found = measure_beside_fno("smoke", "darcy2d", "spectrakan", 1)
    assert min(found.values()) > 0
    assert set(found) == {"spectrakan", "fno"}
    assert torch.get_num_threads() == threads


def test_a_step_trains_the_model_of_the_cell():
    step = TrainingStep("smoke", "darcy2d", "fno")
    model = step.operator
    before = [parameter.detach().clone() for parameter in model.parameters()]
    step()
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert (model.config.width, model.config.num_modes) == (20, 12), "the size of the preset"


def test_seconds_of_records_and_measured_steps_are_beside_fnos(archive: Archive, keep):
    for model in ("spectrakan", "fno"):
        keep(Cell("main", "smoke", "darcy2d", model), 0.1)
    (archive.folder / FILE).write_text(json.dumps({"cpu_seconds": {"darcy2d": {"spectrakan": 0.8, "fno": 0.5}}}))
    (table,) = costs.tables(archive)
    rows = {row.label: row.cells for row in table.rows}
    assert rows["SpectraKAN"][1:4] == (Score(40.0), Score(40.0 / 30.0), Score(1.6))
    assert rows["FNO"][2:4] == (Score(1.0), Score(1.0))
