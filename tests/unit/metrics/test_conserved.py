"""Errors of means over the domain."""

from __future__ import annotations

import pytest
import torch

from spectrakan.metrics import evaluate_fields


def test_an_error_without_mean_is_conserved_and_one_with_mean_is_not():
    x = torch.arange(16) / 16
    target = torch.ones(1, 2, 16, 1)
    wave = torch.sin(2 * torch.pi * x).reshape(1, 1, 16, 1)
    assert evaluate_fields(target + wave, target)["crmse"] < 1e-8
    assert evaluate_fields(target + wave + 0.25, target)["crmse"] == pytest.approx(0.25, rel=1e-6)


def test_opposite_biases_of_two_frames_do_not_cancel():
    target = torch.zeros(1, 2, 8, 1)
    pred = target + torch.tensor([3.0, -4.0]).reshape(1, 2, 1, 1)
    assert evaluate_fields(pred, target)["crmse"] == pytest.approx((12.5) ** 0.5, rel=1e-14)
