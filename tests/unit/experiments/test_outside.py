"""Scores outside the range of training: where the samples lie, and what the numbers are."""

from __future__ import annotations

import numpy as np
import pytest

import spectrakan as sk
from experiments import attribution, outside
from experiments.archive import Archive
from experiments.datasets import Datasets
from experiments.families.catalog import FAMILIES, family_of
from experiments.scales import CASES, scale_named
from spectrakan.data.generate import generate

SIGNATURE = sk.OperatorSignature(
    space_dims=1, history=3, in_channels=1, out_channels=1, num_params=0, boundary=("periodic",)
)


def test_every_case_of_a_family_has_its_family():
    named = {case for case in CASES if family_of(case) is not None}
    assert named == set(attribution.family_cases())


@pytest.mark.parametrize("name", FAMILIES)
def test_ranges_lie_beyond_those_of_training(name: str):
    family = FAMILIES[name]
    for side, ranges in family.outside().items():
        parameter, _, which = side.rpartition("_")
        low, high = family.ranges[parameter]
        found = ranges.pop(parameter)
        edge = low if which == "below" else high
        assert edge in found
        assert found[0] < found[1]
        assert found[1] - found[0] == pytest.approx(0.25 * (high - low))
        assert not low < sum(found) / 2 < high
        assert all(family.ranges[other] == ranges[other] for other in ranges)


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_outside_can_be_solved(name: str):
    """The whole of each outer range, at the family's own grid."""
    family = FAMILIES[name]
    cells = family.data["resolution"]
    assert isinstance(cells, int)
    for ranges in family.outside().values():
        made = generate(family.problem, 2, cells, seed=1, frames=3, params=ranges)
        assert np.isfinite(made.values).all()


def test_errors_are_those_of_the_rollouts(archive: Archive, monkeypatch):
    """Persistence on advection: errors by hand, from samples that lie where they should."""
    monkeypatch.setattr(outside, "SAMPLES", 8)
    datasets, case = Datasets(archive), "advection_diffusion1d_hidden"
    model = sk.build_model("persistence", SIGNATURE)
    found = outside.outside_scores(model, case, "a cell", datasets)
    family = FAMILIES["advection_diffusion1d"]
    for side, ranges in family.outside().items():
        made = generate(family.problem, 2, 128, datasets.scale.test_seed, params=ranges).values
        by_hand = np.sqrt(np.square(made[:, 3:] - made[:, 2:3]).mean((1, 2, 3)))
        assert found["outside"]["sides"][side]["rmse"] == pytest.approx(by_hand.mean(), rel=1e-5)
        assert found["outside"]["sides"][side]["num_samples"] == 2
    sides = found["outside"]["sides"].values()
    assert found["outside"]["rmse"] == pytest.approx(np.mean([side["rmse"] for side in sides]))
    made = generate(family.problem, 8, 128, datasets.scale.test_seed, params=dict(family.ranges)).values[:, ::2]
    by_hand = np.sqrt(np.square(made[:, 3:] - made[:, 2:3]).mean((1, 2, 3)))
    assert found["other_step"]["rmse"] == pytest.approx(by_hand.mean(), rel=1e-5)
    assert (found["other_step"]["stride"], found["other_step"]["horizon"]) == (2, 3)
    lines = datasets.ledger.read()
    assert [line["event"] for line in lines] == ["generated", "read"] * 5
    assert len({line["set"] for line in lines}) == 5


def test_other_cases_have_no_such_scores(archive: Archive):
    model = sk.build_model("persistence", SIGNATURE)
    assert outside.outside_scores(model, "cns1d", "a cell", Datasets(archive)) == {}
    assert Datasets(archive).ledger.read() == []


def test_tables_show_them_with_verdicts(archive: Archive, keep):
    short = Archive(archive.results, archive.cache, "short")
    errors = {"whole": 0.5, "no_token": 1.0, "ffno": 0.8, "fno": 2.0}
    for cell in attribution.family_stages(scale_named("short"))[0](short):
        if cell.case == "burgers1d_hidden" and cell.seed < 3 and cell.label in errors:
            error = errors[cell.label] * (1 + 0.02 * cell.seed)
            keep(cell, error, outside={"rmse": 4 * error}, other_step={"rmse": None})
    inside, beyond, slower, _ = attribution.tables(short)  # the last has the parts, of the same cells
    assert beyond.notes[1].startswith("burgers1d_hidden: 0.625 of F-FNO (p = 0.000): wins")
    assert beyond.rows[0].cells[0].value == pytest.approx(4 * inside.rows[0].cells[0].value)
    assert slower.rows[0].cells[0].value is None, "a rollout that is not finite leaves a gap"
    assert len(slower.notes) == 1
    assert "receives the time step" in slower.notes[0]
