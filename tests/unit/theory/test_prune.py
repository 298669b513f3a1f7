"""Pruning: planted dead edges are found, dead ones cost nothing, and the report tells the truth."""

from __future__ import annotations

import pytest
import torch

from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models import build_model
from spectrakan.nn.kan import KAN
from spectrakan.theory.edge_views import edge_views, prune_kan, prune_token
from spectrakan.theory.parts import token_kan


def planted(extension: str) -> tuple[KAN, torch.Tensor]:
    """A KAN with edges that are zero, edges that are constant on the data, and a neuron nobody listens to."""
    torch.manual_seed(0)
    kan = KAN([3, 4, 2], extension=extension).double()
    first, second = kan.layers
    samples = torch.rand(200, 3, dtype=torch.float64) * 2 - 1
    samples[:, 2] = 0.37  # an input that never varies: its edges pass on constants
    kan.fit_grid(samples)
    with torch.no_grad():
        for weight in (first.base_weight, first.spline_weight):
            weight[1, 0] = 0.0
        for weight in (second.base_weight, second.spline_weight):
            weight[:, 3] = 0.0  # neuron 3 of the hidden layer is not heard
    return kan, samples


@pytest.mark.parametrize("extension", ["linear", "zero"])
def test_planted_dead_edges_are_found_and_cost_nothing(extension):
    kan, samples = planted(extension)
    pruned, report = prune_kan(kan, samples, threshold=1e-9)
    expected = torch.zeros(4, 3, dtype=torch.bool)
    expected[1, 0] = True
    expected[:, 2] = True
    expected[3] = True
    assert torch.equal(report.dead[0], expected)
    assert torch.equal(report.dead[1], torch.tensor([[False, False, False, True]] * 2))
    assert (report.removed, report.edges) == (9, 20)
    assert report.change < 1e-12
    with torch.no_grad():
        assert torch.allclose(pruned(samples), kan(samples), atol=1e-12)
        # The dead edges really are gone: moving only what they saw moves nothing.
        moved = samples.clone()
        moved[:, 2] += 0.01
        assert torch.equal(pruned(moved), pruned(samples))
        assert not torch.equal(kan(moved), kan(samples))


def test_a_second_pruning_takes_nothing_more():
    kan, samples = planted("linear")
    once, report = prune_kan(kan, samples, threshold=0.05)
    _, again = prune_kan(once, samples, threshold=0.05)
    assert again.change < 1e-12
    assert all(torch.equal(one, other) for one, other in zip(report.dead, again.dead, strict=True))


def test_weak_edges_go_first_and_the_change_is_what_is_reported():
    kan, samples = planted("linear")
    changes, removed = [], []
    for threshold in (0.0, 0.2, 0.5, 0.9):
        pruned, report = prune_kan(kan, samples, threshold=threshold)
        with torch.no_grad():
            before, after = kan(samples), pruned(samples)
        deviation = (before - before.mean(0)).square().sum(1).mean().sqrt()
        assert report.change == pytest.approx(float((after - before).square().sum(1).mean().sqrt() / deviation))
        changes.append(report.change)
        removed.append(report.removed)
    assert removed == sorted(removed)
    assert removed[0] < removed[-1]
    assert changes[0] < 1e-12 < changes[-1]


def test_the_spread_is_that_of_each_edge_alone():
    kan, samples = planted("linear")
    view = edge_views(kan, samples)[0]
    layer = kan.layers[0]
    with torch.no_grad():
        for j, i in ((0, 0), (2, 1), (1, 2)):
            values = layer.edge_curves(samples.T)[j, i]
            assert float(view.spread()[j, i]) == pytest.approx(float(values.std(correction=0)), abs=1e-15)
            assert torch.allclose(view.outputs[j, i], values)
        sums = view.outputs.sum(1).T
        assert torch.allclose(sums, layer(samples))


def test_the_density_counts_the_samples():
    kan, samples = planted("linear")
    view = edge_views(kan, samples)[0]
    edges, shares = view.density(bins=7)
    for i in range(3):
        counted = torch.histogram(samples[:, i], edges[i]).hist / 200
        assert torch.allclose(shares[i], counted)


def test_a_model_s_token_is_pruned_and_its_error_told(generator):
    signature = OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1)
    torch.manual_seed(0)
    model = build_model("spectrakan", signature, width=4, num_modes=3, num_layers=1, token_width=5)
    with torch.no_grad():
        for weight in (token_kan(model).layers[0].base_weight, token_kan(model).layers[0].spline_weight):
            weight[2:4] = 0.0
    inputs = torch.randn(6, 2, 16, 1, generator=generator)
    windows = [Window(inputs=inputs, targets=0.9 * inputs[:, -1:])]
    pruned, report = prune_token(model, windows, threshold=0.0)
    # Two hidden neurons are silent for both inputs; being constant, they tell the five numbers of the token nothing.
    assert torch.equal(report.dead[0].all(1), torch.tensor([False, False, True, True, False]))
    assert torch.equal(report.dead[1].all(0), report.dead[0].all(1))
    assert report.removed == 2 * 2 + 5 * 2
    assert report.error_after == pytest.approx(report.error_before, rel=1e-5)
    rough, worse = prune_token(model, windows, threshold=0.9)
    with torch.no_grad():
        error = ((rough(inputs) - windows[0].targets[:, 0]).norm(dim=1) / windows[0].targets[:, 0].norm(dim=1)).mean()
    assert worse.error_after == pytest.approx(float(error), rel=1e-5)
    assert worse.removed > report.removed
    assert pruned is not model


def test_nonsense_is_refused():
    kan, samples = planted("linear")
    with pytest.raises(ConfigError, match="share of the widest edge"):
        prune_kan(kan, samples, threshold=1.0)
    with pytest.raises(ConfigError, match="at least 2 samples"):
        prune_kan(kan, samples[:1])
    signature = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    with pytest.raises(ConfigError, match="at least one window"):
        prune_token(build_model("spectrakan", signature), [])
