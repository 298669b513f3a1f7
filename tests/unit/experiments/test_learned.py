"""Figures of what a model has learned show the numbers they are given."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from experiments.gate_spectra import axis_shares, gate_spectra
from experiments.learned import attention_maps, edge_functions, gate_spectra_by_layer, widest_edges
from spectrakan.errors import ShapeError
from spectrakan.fields import OperatorSignature
from spectrakan.models import build_model
from spectrakan.nn.kan import KAN
from spectrakan.theory.parts import edge_views


@pytest.fixture(scope="module")
def view():
    torch.manual_seed(0)
    return edge_views(KAN([3, 4]), torch.rand(60, 3))[0]


def test_an_edge_is_drawn_with_curve_density_and_knots(view):
    figure = edge_functions(view, [(2, 1)])
    axes, shade = figure.axes
    curve, ticks = axes.lines
    assert np.array_equal(curve.get_xdata(), view.points[1].numpy())
    assert np.array_equal(curve.get_ydata(), view.curves[2, 1].numpy())
    assert np.array_equal(ticks.get_xdata(), view.knots[1].numpy())
    (steps,) = shade.patches
    seen = torch.histogram(view.inputs[1], torch.linspace(*view.points[1, [0, -1]].tolist(), 41)).hist
    assert np.allclose(steps.get_data().values, seen / 60)
    assert axes.get_title() == "1 → 2"
    assert axes.get_zorder() > shade.get_zorder()


def test_without_a_choice_the_widest_edges_are_drawn(view):
    order = widest_edges(view)
    spread = view.spread()
    assert len(order) == 12
    assert all(spread[order[n]] >= spread[order[n + 1]] for n in range(11))
    titles = [axes.get_title() for axes in edge_functions(view).axes if axes.get_title()]
    assert titles == [f"{into} → {out}" for out, into in order]
    with pytest.raises(ShapeError, match="at least one edge"):
        edge_functions(view, [])


def test_gates_have_one_panel_a_layer_and_one_line_an_axis():
    signature = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1)
    model = build_model("amfno", signature, width=4, num_modes=4, num_layers=2)
    spectra = gate_spectra(model)
    figure = gate_spectra_by_layer(spectra)
    assert len(figure.axes) == 2
    drawn = [line for axes in figure.axes for line in axes.lines]
    for line, spectrum in zip(drawn, spectra, strict=True):
        assert np.array_equal(line.get_xdata(), spectrum.frequencies.numpy())
        assert np.array_equal(line.get_ydata(), spectrum.strength.numpy())
    first, second = axis_shares(spectra)[("fine", 0)].tolist()
    assert figure.axes[0].get_title() == f"fine 0: {first:.0%}, {second:.0%}"
    seen = [dataclasses.replace(one, power=one.strength * 2) for one in spectra]
    again = gate_spectra_by_layer(seen)
    assert again.axes[0].get_ylabel() == "power"
    assert np.array_equal(again.axes[0].lines[0].get_ydata(), 2 * spectra[0].strength.numpy())
    with pytest.raises(ShapeError, match="at least one spectrum"):
        gate_spectra_by_layer([])


def test_attention_is_drawn_relative_to_the_mean_cell():
    field = np.linspace(0, 1, 64).reshape(8, 8)
    bent = 1 / 64 + 0.5 / 64 * np.sign(field - 0.5)
    figure = attention_maps(field, bent[None])
    (image,) = next(axes for axes in figure.axes if axes.get_title() == "attention 0").images
    assert np.allclose(np.unique(image.get_array()), [0.5, 1.5])
    with pytest.raises(ShapeError, match="heads"):
        attention_maps(field, bent[None, :4])
