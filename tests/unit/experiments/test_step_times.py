"""Steps taken in turns: measured for all models of a case, kept, and what the scorecard goes by."""

from __future__ import annotations

import json

import torch

from spectrakan.experiments import costs, scorecard
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.cells import Cell
from spectrakan.experiments.step_times import FILE, TrainingStep, measure_beside_fno, measure_steps, step_ratio


def test_every_model_of_every_case_is_measured_and_kept(archive: Archive):
    told: list[str] = []
    times = measure_steps(archive, models=["spectrakan"], rounds=1, processes=1, tell=told.append)
    assert set(times) == {"cns1d", "darcy2d", "shallow_water2d", "droplet2d"}
    assert all(set(found) == {"spectrakan", "fno"} and min(found.values()) > 0 for found in times.values())
    assert json.loads((archive.folder / FILE).read_text())["cpu_seconds"] == times
    assert step_ratio(archive, "cns1d", "spectrakan") == times["cns1d"]["spectrakan"] / times["cns1d"]["fno"]
    assert step_ratio(archive, "cns1d", "unet") is None
    assert step_ratio(archive, "elsewhere", "fno") is None
    assert len(told) == 4


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
    assert model.config.num_modes == 12, "the size of the campaign, not the library's default"


def test_the_scorecard_prefers_them_to_seconds_of_different_hours(archive: Archive, keep):
    for model in ("spectrakan", "fno"):
        keep(Cell("main", "smoke", "darcy2d", model), 0.1)
    name = "Training seconds on darcy2d at most 1.5 times FNO's"
    before = {bar.name: bar for bar in scorecard.bars(archive)}[name]
    assert (before.found, before.reached) == ("1.33", True)
    (archive.folder / FILE).write_text(json.dumps({"cpu_seconds": {"darcy2d": {"spectrakan": 0.8, "fno": 0.5}}}))
    after = {bar.name: bar for bar in scorecard.bars(archive)}[name]
    assert after.found == "1.60 by steps taken in turns (1.33 by the seconds of the records)"
    assert after.reached is False
    (table,) = costs.tables(archive)
    rows = {row.label: row.cells for row in table.rows}
    assert rows["SpectraKAN"][3].value == 1.6
    assert rows["FNO"][3].value == 1.0
