"""The cost of a step is measured, and grows with the work."""

from __future__ import annotations

import torch

import spectrakan as sk
from experiments.costs import step_seconds


def test_more_work_costs_more_and_no_gradient_is_left_behind():
    torch.manual_seed(0)
    facts = sk.OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, num_params=1)
    model = sk.build_model("transolver", facts, width=32, num_layers=1, num_heads=2, num_slices=4)
    little, much = step_seconds(model, (8, 8), batch=1), step_seconds(model, (64, 64), batch=4)
    assert much > 4 * little > 0
    assert all(parameter.grad is None for parameter in model.parameters())
    assert 0 <= step_seconds(sk.build_model("persistence", facts), (8, 8)) < much
