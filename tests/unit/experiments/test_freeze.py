"""Test samples are read only under a freeze, which needs bracketed rates and fair numbers of trials."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from experiments import freeze as freezing
from experiments import frozen
from experiments.archive import Archive
from experiments.cells import Cell
from experiments.execution import run_cell
from experiments.fingerprint import STEPS, agree, fingerprint
from experiments.freeze import open_rates, unfair_cases
from experiments.trials import PROTOTYPES_FILE, trial_counts
from spectrakan.errors import ConfigError

CELL = Cell("main", "short", "darcy2d", "fno")


@pytest.fixture
def short(archive: Archive) -> Archive:
    return Archive(archive.results, archive.cache, "short")


def trial(case: str, model: str, label: str, table: str = "search", **overrides: str) -> Cell:
    given = tuple(f"training.{key}={value}" for key, value in overrides.items())
    return Cell(table, "short", case, model, label=label, overrides=given, test=False)


def test_no_test_sample_is_read_without_a_freeze(short: Archive):
    with pytest.raises(ConfigError, match="there is no freeze"):
        run_cell(CELL, short)
    assert short.ledger.read() == []
    frozen.require_frozen(Cell("main", "smoke", "darcy2d", "fno"), short)  # other scales need none


def test_spectrakan_may_not_have_more_trials_than_its_rival(short: Archive, keep):
    for number in range(2):
        keep(trial("darcy2d", "spectrakan", f"t{number}"), 0.1, validation=0.1 + number)
    keep(trial("darcy2d", "ffno", "t0"), 0.1, validation=0.1)
    assert unfair_cases(short, ["darcy2d"]) == ["darcy2d: 2 development trials of spectrakan, 1 of ffno"]
    assert unfair_cases(short, ["cns1d"]) == []
    keep(trial("darcy2d", "ffno", "lr", "rates"), 0.1, validation=0.2)
    assert unfair_cases(short, ["darcy2d"]) == []


def test_repeated_trials_count_once_prototypes_count_and_the_papers_model_counts_apart(short: Archive, keep):
    for label, table in (("whole", "search"), ("lr", "rates")):
        keep(trial("darcy2d", "spectrakan", label, table), 0.1, validation=0.1)
    keep(replace(trial("darcy2d", "spectrakan", "lr2", "rates"), variant="paper"), 0.1, validation=0.3)
    assert trial_counts(short) == {("darcy2d", "spectrakan"): 1, ("darcy2d", "spectrakan/paper"): 1}
    (short.folder / PROTOTYPES_FILE).write_text('{"case": "darcy2d", "model": "spectrakan"}\n')
    assert trial_counts(short)["darcy2d", "spectrakan"] == 2


def test_rates_must_be_bracketed(short: Archive, keep):
    trivial = Cell("main", "short", "darcy2d", "climatology")
    assert open_rates(short, [CELL, trivial]) == ["darcy2d, fno (default): rate not tried"]
    for rate, error in ((3e-3, 0.3), (1e-2, 0.2)):
        keep(trial("darcy2d", "fno", f"lr{rate}", "rates", learning_rate=str(rate)), 0.1, validation=error)
    assert open_rates(short, [CELL]) == ["darcy2d, fno (default): rate at an edge"]
    keep(trial("darcy2d", "fno", "lr0.03", "rates", learning_rate="0.03"), 0.1, validation=0.4)
    assert open_rates(short, [CELL]) == []
    keep(trial("darcy2d", "fno", "lr0.001", "rates", learning_rate="0.001"), 0.1, validation=0.4)
    keep(trial("darcy2d", "fno", "lr0.003", "rates", learning_rate="0.003"), 0.1, validation=0.1)
    assert open_rates(short, [CELL]) == ["darcy2d, fno (default): its rate is 0.01, the best of the trials 0.003"]


@pytest.fixture
def frozen_code(monkeypatch) -> dict[str, list[float]]:
    """A history that contains the freeze, with changed code whose fingerprints the test sets by model."""
    computed = {"fno": [1.0, 0.5, 0.1], "ffno": [2.0, 0.5, 0.1]}
    answers = {"rev-parse": "a" * 40, "diff": "src/spectrakan/nn/axial.py"}
    for module in (freezing, frozen):
        monkeypatch.setattr(module, "git", lambda command, *arguments: answers.get(command, ""))
        # Another seed has other numbers: cells of all seeds are compared by the frozen one.
        monkeypatch.setattr(module, "fingerprint", lambda cell: [value + cell.seed for value in computed[cell.model]])
    monkeypatch.setattr(frozen, "descends", lambda commit: True)
    monkeypatch.setattr(freezing, "open_rates", lambda archive, cells: [])
    return computed


def test_tables_are_frozen_one_after_the_other_with_one_code(short: Archive, frozen_code):
    """The commit stays the first one's; a frozen cell cannot get other settings."""
    short.results.mkdir(parents=True, exist_ok=True)
    other = Cell("families", "short", "burgers1d_given", "ffno")
    freezing.freeze(short, [CELL])
    freezing.freeze(short, [other])
    document = frozen.read_freeze(short)
    assert document is not None
    assert document["commit"] == "a" * 40
    for cell in (CELL, other):
        entry = document["cells"][frozen.key_of(cell)]
        assert entry["settings"] == frozen.settings_hash(cell)
        assert Cell.from_json(entry["cell"]) == cell
        assert entry["fingerprint"] == frozen_code[cell.model]
    with pytest.raises(ConfigError, match="frozen with other settings"):
        freezing.freeze(short, [Cell("main", "short", "darcy2d", "fno", overrides=("model.width=9",))])


def test_rewritten_code_may_go_on_while_it_computes_the_same(short: Archive, frozen_code):
    short.results.mkdir(parents=True, exist_ok=True)
    freezing.freeze(short, [CELL])
    frozen_code["fno"] = [1.0002, 0.5, 0.1]
    for seed in (0, 3):
        frozen.require_frozen(replace(CELL, seed=seed), short)
    frozen_code["fno"] = [1.01, 0.5, 0.1]
    with pytest.raises(ConfigError, match="computes something else"):
        frozen.require_frozen(CELL, short)
    with pytest.raises(ConfigError, match="computes something else"):  # of any frozen cell, for any further table
        freezing.freeze(short, [Cell("families", "short", "burgers1d_given", "ffno")])


def test_changed_settings_and_foreign_histories_are_refused(short: Archive, monkeypatch):
    entry = {"cell": CELL.to_json(), "settings": frozen.settings_hash(CELL), "fingerprint": [1.0]}
    document = {"commit": "0" * 40, "cells": {"short/main/darcy2d/fno/default": entry}}
    (short.results / frozen.FILE).parent.mkdir(parents=True, exist_ok=True)
    (short.results / frozen.FILE).write_text(json.dumps(document))
    wider = Cell("main", "short", "darcy2d", "fno", overrides=("model.width=9",))
    with pytest.raises(ConfigError, match="other settings"):
        frozen.require_frozen(wider, short)
    with pytest.raises(ConfigError, match="not part of the freeze"):
        frozen.require_frozen(Cell("main", "short", "darcy2d", "ffno"), short)
    with pytest.raises(ConfigError, match="does not contain the freeze"):
        frozen.require_frozen(CELL, short)
    monkeypatch.setattr(frozen, "descends", lambda commit: True)
    monkeypatch.setattr(frozen, "git", lambda *arguments: "")
    frozen.require_frozen(CELL, short)
    assert frozen.settings_hash(CELL) == frozen.settings_hash(Cell("main", "short", "darcy2d", "fno", seed=3))


CHEAP = Cell("families", "short", "burgers1d_given", "fno")


def test_a_fingerprint_repeats_and_changes_with_the_model(monkeypatch):
    first = fingerprint(CHEAP)
    assert len(first) == 2 * STEPS + 1
    assert agree(fingerprint(CHEAP), first)
    assert not agree(fingerprint(replace(CHEAP, overrides=("model.num_modes=15",))), first)
    relu = torch.nn.functional.relu
    monkeypatch.setattr(torch.nn.functional, "gelu", lambda x, **rest: relu(x))
    assert not agree(fingerprint(CHEAP), first)
