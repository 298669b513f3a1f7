"""The list of models: every model at every task's size."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_models import SMALL

import spectrakan as sk
from spectrakan.cli.models import models, reference_signatures
from spectrakan.models import MODELS


def test_every_model_is_listed_with_its_parameters_at_every_size(capsys):
    state = torch.random.get_rng_state()
    models()
    assert torch.equal(torch.random.get_rng_state(), state), "listing draws from no one's generator"
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(MODELS)
    table = {line.split()[0]: line.split() for line in lines[2 : 2 + len(MODELS)]}
    assert list(table) == list(MODELS)
    for name, words in table.items():
        assert " ".join(words[7:]) == f"{MODELS[name].refinement} {MODELS[name].reads}"
    head = lines[1].split()
    sizes = reference_signatures()
    assert head[1:7] == list(sizes)
    model = sk.build_model("fno", sizes["darcy2d"], width=20, num_modes=12)
    expected = sum(parameter.numel() for parameter in model.parameters())
    assert table["fno"][head.index("darcy2d")] == f"{expected:,}"
    assert table["ridge"][1:7] == ["0"] * 6


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_takes_one_to_three_dimensions(name):
    for dims in (1, 2, 3):
        facts = sk.OperatorSignature(space_dims=dims, history=1, in_channels=1, out_channels=1)
        model = sk.build_model(name, facts, **SMALL.get(name, {}))
        with torch.no_grad():
            answers = [model(torch.randn(1, 1, *[cells] * dims, 1)) for cells in (8, 11)]
        assert all(bool(torch.isfinite(answer).all()) for answer in answers)


def test_the_trained_models_are_listed_with_their_cards(capsys):
    models(pretrained=True)
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "name"
    assert [row.split()[0] for row in rows] == ["cns1d-small", "darcy2d-small", "droplet2d-small"]
    for row in rows:
        assert Path(row.split()[-1]).read_text().startswith(f"# {row.split()[0]}")
        assert float(row.split()[3]) <= 1.5
