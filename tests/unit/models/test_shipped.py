"""The trained models of the package: small enough, loadable by name, and as good as their cards say."""

from __future__ import annotations

import json

import pytest
import torch

import spectrakan as sk
from spectrakan.models.pretrained import PRETRAINED, shipped
from spectrakan.pde.darcy2d import DarcyParameters, draw_coefficient
from spectrakan.pde.darcy2d import solve as solve_darcy
from spectrakan.serve.scenes import advance
from tools import pretrained_card
from tools.pool import add_drops, averaged, still


def test_they_are_small():
    sizes = {name: sum(path.stat().st_size for path in (PRETRAINED / name).iterdir()) for name in shipped()}
    assert set(sizes) == {"cns1d-small", "darcy2d-small", "droplet2d-small"}
    assert max(sizes.values()) <= 1.5e6
    assert sum(sizes.values()) <= 5e6


@pytest.mark.parametrize("name", ["cns1d-small", "darcy2d-small", "droplet2d-small"])
def test_cards_tell_what_the_scores_are(name: str):
    card, facts = (PRETRAINED / f"{name}.md").read_text(), json.loads((PRETRAINED / f"{name}.json").read_text())
    for part in ("Data", "Training", "Scores", "Limits", "Certificate", "Licence"):
        assert f"## {part}" in card
    for part in (*pretrained_card.scores(facts), *pretrained_card.certificate(facts["certificate"])):
        assert part in card, "written by hand, or older than the scores"
    given = pretrained_card.settings(PRETRAINED / name)
    assert f"Settings: {', '.join(f'{key}={value}' for key, value in given.items())};" in card
    assert facts["certificate"]["inputs"] >= 3
    model = sk.from_pretrained(name)
    assert sum(p.numel() for p in model.parameters()) == facts["parameters"]
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_water_is_predicted_as_well_as_the_card_says():
    facts = json.loads((PRETRAINED / "droplet2d-small.json").read_text())
    drops = torch.tensor(
        [[[0.3, 0.6, 1.0, 0.006], [0.8, 0.2, 0.6, 0.004]], [[0.1, 0.1, 1.5, 0.008], [0.5, 0.9, 0.3, 0.01]]]
    )
    start = add_drops(still(2), drops)
    truth = averaged(advance(start, 25), 32)[..., 0]
    given = sk.rollout(sk.from_pretrained("droplet2d-small"), averaged(start, 32).float()[:, None], 25)[..., 0]
    error = (given - truth).flatten(2).norm(dim=2) / truth.flatten(2).norm(dim=2)
    assert float(error.mean()) < 3 * facts["scores"]["32"]["relative_l2"]
    calm = truth.mean((2, 3), keepdim=True) - truth
    still_water = calm.flatten(2).norm(dim=2) / truth.flatten(2).norm(dim=2)
    assert float(error.mean()) < 0.5 * float(still_water.mean()), "better than water that is always still"


def test_pressure_is_predicted_as_well_as_the_card_says():
    facts = json.loads((PRETRAINED / "darcy2d-small.json").read_text())
    media = draw_coefficient(6, (64, 64), DarcyParameters(), torch.Generator().manual_seed(77))
    truth = solve_darcy(media, (0.0,), DarcyParameters())[:, 0]
    with torch.no_grad():
        given = sk.from_pretrained("darcy2d-small")(media.float()[:, None])
    error = (given - truth).flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)
    assert float(error.mean()) < 3 * facts["scores"]["64"]["pressure"]


def test_gas_is_predicted_as_well_as_the_card_says():
    facts = json.loads((PRETRAINED / "cns1d-small.json").read_text())
    truth = torch.as_tensor(sk.generate("cns1d", num_samples=4, resolution=128, seed=77).values).float()
    given = sk.rollout(sk.from_pretrained("cns1d-small"), truth[:, :1], truth.shape[1] - 1)
    error = ((given - truth[:, 1:]).norm(dim=2) / truth[:, 1:].norm(dim=2)).mean((0, 1))
    for field, found in zip(("density", "velocity", "pressure"), error.tolist(), strict=True):
        assert found < 3 * facts["scores"]["128"][field], field
