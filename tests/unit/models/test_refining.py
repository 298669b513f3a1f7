"""On cells coarser than those of training the network works on those of training."""

from __future__ import annotations

import pytest
import torch

from spectrakan.fields import OperatorSignature, Window
from spectrakan.models import build_model, from_pretrained
from spectrakan.numerics.resample import block_mean, split_cells

FACTS = OperatorSignature(space_dims=2, history=2, in_channels=1, out_channels=1, boundary=("outflow", "periodic"))


@pytest.fixture
def trained(generator):
    """A model that has seen 16 x 16 cells; small random weights stand for training."""
    model = build_model("spectrakan", FACTS, width=4, num_modes=4, num_layers=2, coarser_cells="refine")
    values = torch.randn(3, 3, 16, 16, 1, generator=generator)
    model.prepare([Window(values[:, :2], values[:, 2:])])
    return model.eval()


def _field(cells, generator):
    return torch.randn(2, 2, *cells, 1, generator=generator)


@torch.no_grad()
def test_coarse_cells_are_cut_and_predictions_averaged_back(trained, generator):
    coarse = _field((8, 8), generator)
    fine = split_cells(split_cells(coarse, 2, periodic=False), 3, periodic=True)
    expected = block_mean(block_mean(trained(fine), 1, 2), 2, 2)
    assert (trained(coarse) - expected).abs().max() < 1e-5
    assert trained(coarse).shape == (2, 8, 8, 1)


@torch.no_grad()
def test_each_axis_is_cut_as_often_as_it_needs(trained, generator):
    axes = trained.axes(_field((4, 16), generator), None)
    assert trained.splits(axes) == [2, 0]
    assert trained(_field((4, 16), generator)).shape == (2, 4, 16, 1)


@pytest.mark.parametrize("cells", [(16, 16), (32, 32), (12, 12), (5, 7)])
@torch.no_grad()
def test_other_cells_are_taken_as_they_come(trained, cells, generator):
    field = _field(cells, generator)
    axes = trained.axes(field, None)
    assert trained.splits(axes) == [0, 0]
    history, _ = trained.normalized(field, None)
    plain = trained.completed(trained.respond(history, None, axes), history, axes)
    assert torch.equal(trained(field), trained.output_units.denormalize(plain))


@torch.no_grad()
def test_saved_models_remember_their_cells(trained, tmp_path, generator):
    trained.save_pretrained(tmp_path / "model")
    coarse = _field((8, 8), generator)
    assert torch.equal(from_pretrained(tmp_path / "model")(coarse), trained(coarse))


@pytest.mark.parametrize("choices", [{}, {"variant": "paper"}, {"coarser_cells": "refine"}])
def test_models_take_cells_as_they_come_unless_asked_and_trained(choices, generator):
    model = build_model("spectrakan", FACTS, width=4, num_modes=4, num_layers=2, **choices)
    assert model.splits(model.axes(_field((8, 8), generator), None)) == [0, 0]


def test_training_on_coarser_cells_goes_through_both_maps(trained, generator):
    coarse = _field((8, 8), generator).requires_grad_()
    trained(coarse).square().sum().backward()
    assert torch.isfinite(coarse.grad).all()
    assert coarse.grad.abs().sum() > 0
