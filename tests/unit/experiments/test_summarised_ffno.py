"""F-FNO with a summary: it depends on how the state evolves, and without FiLM it is F-FNO."""

from __future__ import annotations

import pytest
import torch

from experiments.summarised_ffno import SummarisedFFNO
from spectrakan.fields import OperatorSignature

SMALL = {"width": 8, "num_modes": 4, "num_layers": 2}
SIGNATURE = OperatorSignature(
    space_dims=1,
    history=3,
    in_channels=1,
    out_channels=1,
    num_params=1,
    param_names=("speed",),
    boundary=("periodic",),
)


@pytest.mark.parametrize("way", ["channels", "film"])
def test_training_changes_what_the_summary_does(way, generator):
    torch.manual_seed(0)
    model = SummarisedFFNO(SIGNATURE, way, **SMALL)
    x, params = torch.randn(6, 3, 16, 1, generator=generator), torch.rand(6, 1, generator=generator)
    assert model(x, params).shape == (6, 16, 1)
    if way == "film":  # silent at first: FiLM starts at zero
        expected = model.network._forward(x, params, model.network.axes(x, None))
        assert torch.allclose(model(x, params), expected, atol=1e-6)
        with torch.no_grad():
            model.film.film.weight.normal_()
    before = model(x, params)
    with torch.no_grad():
        model.units.moments[0].add_(1.0)
    model.eval()
    assert not torch.allclose(model(x, params), before, atol=1e-4)
