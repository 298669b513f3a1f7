"""Views of a KAN's edges: outputs of each edge, their spread and the density of the inputs."""

from __future__ import annotations

import pytest
import torch

from spectrakan.errors import ConfigError
from spectrakan.nn.kan import KAN
from spectrakan.theory.parts import edge_views


def drawn() -> tuple[KAN, torch.Tensor]:
    """A KAN on samples of three inputs, the last of which never varies."""
    torch.manual_seed(0)
    kan = KAN([3, 4, 2]).double()
    samples = torch.rand(200, 3, dtype=torch.float64) * 2 - 1
    samples[:, 2] = 0.37
    kan.fit_grid(samples)
    return kan, samples


def test_the_spread_is_that_of_each_edge_alone():
    kan, samples = drawn()
    view = edge_views(kan, samples)[0]
    layer = kan.layers[0]
    with torch.no_grad():
        for j, i in ((0, 0), (2, 1), (1, 2)):
            values = layer.edge_curves(samples.T)[j, i]
            assert float(view.spread()[j, i]) == pytest.approx(float(values.std(correction=0)), abs=1e-15)
            assert torch.allclose(view.outputs[j, i], values)
        sums = view.outputs.sum(1).T
        assert torch.allclose(sums, layer(samples))


def test_too_few_samples_are_refused():
    kan, samples = drawn()
    with pytest.raises(ConfigError, match="at least 2 samples"):
        edge_views(kan, samples[:1])
