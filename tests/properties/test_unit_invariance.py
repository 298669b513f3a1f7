"""Units change nothing: fields scaled by 2^100 and 2^-100, sixty orders of magnitude apart, train to the same bits.

A power of two changes no digit of a floating-point number, so equality is exact: what differs is a sum that left the
range of its type, or a constant that means something only at one scale.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from small_models import SMALL

from spectrakan.fields import Trajectories
from spectrakan.models.catalog import MODELS
from spectrakan.training import train
from spectrakan.training.settings import LossName

SCALES = (2.0**-100, 2.0**100)
CHANGES = {
    **{name: [f"model.{key}={value}" for key, value in SMALL[name].items()] for name in ("cvit", "transolver")},
    "unet": ["model.width=4", "model.num_levels=1"],
    "deepokan": ["model.num_centres=4"],
    "deeponet": ["model.sensors=8", "model.width=16"],
    "ridge": [],
    "persistence": [],
    "climatology": [],
}
TRAINING = ["training.epochs=2", "training.batch_size=8", "training.learning_rate=0.003", "data.history=2"]


def waves(scale: float, steady: bool = False) -> Trajectories:
    rng = np.random.default_rng(7)
    x, t = np.arange(16) / 16, np.arange(5) / 20
    phase, size = rng.random((10, 1, 1)), 1 + rng.random((10, 1, 1))
    values = (size * (2 + np.sin(2 * np.pi * (x - t[:, None] + phase))))[..., None].astype(np.float32)
    if steady:
        return Trajectories.from_arrays(
            values[:, 1] * np.float32(scale), ("p",), inputs=values[:, 0] * np.float32(scale), input_fields=("a",)
        )
    return Trajectories.from_arrays(values * np.float32(scale), ("u",), boundary=("periodic",))


def trained(
    scale: float, changes: list[str], steady: bool = False
) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    run = train(data=waves(scale, steady), overrides=changes)
    weights = {name: tensor for name, tensor in run.model.state_dict().items() if "_units." not in name}
    return {key: run.record["metrics"][key] for key in ("relative_l2", "nrmse")}, weights


def assert_invariant(changes: list[str], steady: bool = False) -> None:
    scores, weights = trained(1.0, changes, steady)
    assert all(np.isfinite(value) and value > 0 for value in scores.values())
    for scale in SCALES:
        again, same = trained(scale, changes, steady)
        assert again == scores, scale
        assert all(torch.equal(tensor, same[name]) for name, tensor in weights.items()), scale


@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains_and_scores_the_same_in_any_unit(name: str):
    small = CHANGES.get(name, ["model.width=4", "model.num_modes=3"])
    assert_invariant([f"model.name={name}", *small, *TRAINING])


@pytest.mark.parametrize("loss", get_args(LossName))
def test_every_loss_is_free_of_units(loss: str):
    assert_invariant([f"training.loss={loss}", "model.name=fno", "model.width=4", "model.num_modes=3", *TRAINING])


def test_a_steady_map_is_free_of_units():
    assert_invariant(["model.width=4", "model.num_modes=3", *TRAINING[:3]], steady=True)
