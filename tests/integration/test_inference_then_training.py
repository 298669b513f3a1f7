"""A user predicts first and trains afterwards in one session: nothing kept from inference may stand in the way."""

from __future__ import annotations

import pytest
import torch
from small_models import SMALL

import spectrakan as sk
from spectrakan.models.catalog import MODELS

FLOORS = ("persistence", "climatology", "ridge")
# Sizes that no other test of a process uses, so that transforms are made here and in inference mode.
SIZES = {1: (38,), 2: (22, 26)}


@pytest.mark.parametrize("dims", SIZES)
@pytest.mark.parametrize("name", [name for name in MODELS if name not in FLOORS])
def test_gradients_flow_after_inference_on_a_new_grid(name, dims):
    facts = sk.OperatorSignature(
        space_dims=dims, history=1, in_channels=2, out_channels=2, boundary=("wall", "periodic")[:dims]
    )
    model = sk.build_model(name, facts, **SMALL.get(name, {}))
    x = torch.randn(2, 1, *SIZES[dims], 2)
    with torch.inference_mode():
        model.eval()(x)
    model.train()(x).square().mean().backward()
    assert any(float(each.grad.abs().max()) > 0 for each in model.parameters() if each.grad is not None)
