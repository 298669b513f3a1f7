"""On a trained model: flatter splines lower the modulation's constant and its slope, and its quadrature converges."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import pytest
import torch

from benchmarks.attention_quadrature import attention_quadrature
from spectrakan.data.generate import generate
from spectrakan.theory.control import cap_slopes, certified_bound
from spectrakan.theory.parts import token_inputs, token_kan
from spectrakan.training import train

SETTINGS = [
    "model.width=6",
    "model.num_layers=2",
    "model.num_modes=4",
    "model.attention_width=5",
    "model.pool=center+mean+std",
    "data.num_samples=16",
    "data.resolution=12",
    "training.epochs=6",
    "training.batch_size=4",
]


@pytest.fixture(scope="module")
def trained():
    return train("darcy2d", overrides=SETTINGS).model.double()


@pytest.fixture(scope="module")
def inputs():
    return torch.as_tensor(generate("darcy2d", num_samples=4, resolution=12, seed=9).inputs[:], dtype=torch.float64)


@torch.no_grad()
def constants(model, inputs):
    """M_q, M_k, M_v and Lip(q) of the model's own queries, keys and values at its inputs."""
    token, features, _ = model.token_and_features(inputs, None, None)
    layer, cells = model.gml, features.flatten(2)
    keys = torch.einsum("hac,cbn->hban", layer.key, cells).norm(dim=2).max()
    values = torch.einsum("hvc,cbn->hbvn", layer.value, cells).norm(dim=2).max()
    query = layer.query(token).norm(dim=1).max()
    return float(query), float(keys), float(values), float(torch.linalg.matrix_norm(layer.query.weight, 2))


def theorem(model, inputs, trunk_slope):
    """L_m of Theorem 3.2 and L_v + M_v S, with `trunk_slope` for what the trunk does to a change of its input."""
    layer = model.gml
    most_q, most_k, most_v, lip_q = constants(model, inputs)
    root = layer.divisor
    lip_p = math.sqrt(token_kan(model).layers[0].in_features)
    lip_k, lip_v = (float(torch.linalg.matrix_norm(part[0], 2)) * trunk_slope for part in (layer.key, layer.value))
    score = (most_k * lip_q * certified_bound(token_kan(model)) * lip_p + most_q * lip_k) / root
    peak = math.exp(2 * most_q * most_k / root)
    return peak * (lip_v + most_v * score) + peak**2 * most_v * score, lip_v + most_v * score


@torch.no_grad()
def test_flatter_splines_lower_the_constant_of_the_modulation(trained, inputs):
    found = []
    for factor in (1.0, 0.5, 0.2, 0.05):
        model = copy.deepcopy(trained)
        cap_slopes(token_kan(model), factor * certified_bound(token_kan(model)))
        found.append(theorem(model, inputs, trunk_slope=1.0))
    for one, other in pairwise(found):
        assert other[0] < one[0]
        assert other[1] < one[1]
    # Without slopes only the trunk's own part is left, so there is a floor; the token's share is what goes.
    assert found[-1][1] < 0.6 * found[0][1]


def test_flatter_splines_lower_the_slope_through_the_token_and_it_stays_below_its_bound(trained, inputs):
    """dA/dz at real inputs, with features held: at most M_v M_k Lip(q) L_KAN / c, shrinking with L_KAN."""
    layer = trained.gml
    with torch.no_grad():
        _, cells, axes = trained.token_and_features(inputs, None, None)
    summaries = token_inputs(trained, inputs)
    largest, bounds = [], []
    for factor in (1.0, 0.25, 0.05):
        kan = copy.deepcopy(token_kan(trained))
        after = cap_slopes(kan, factor * certified_bound(kan))
        slopes = []
        for sample in range(len(inputs)):
            features = cells[:, sample : sample + 1]

            def modulate(z, kan=kan, features=features):
                return layer(kan(z[None]), features, axes)[0]

            jacobian = torch.autograd.functional.jacobian(modulate, summaries[sample])
            slopes.append(float(torch.linalg.matrix_norm(jacobian, 2)))
        _, most_k, most_v, lip_q = constants(trained, inputs)
        largest.append(max(slopes))
        bounds.append(most_v * most_k * lip_q * after / layer.divisor)
    assert all(slope <= bound for slope, bound in zip(largest, bounds, strict=True))
    assert largest[0] > 3 * largest[1] > 9 * largest[2] > 0
    assert bounds[1] == pytest.approx(0.25 * bounds[0], rel=1e-3)


@torch.no_grad()
def test_the_quadrature_of_a_trained_model_converges_below_the_proposition_s_constant(trained, inputs):
    study = attention_quadrature(trained, inputs, cells=(12, 24, 48, 96, 192))
    assert study.verdict == "holds"
    assert torch.isfinite(study.bounds()[..., -1]).all()  # h = 1/192 is small enough for all samples
    assert torch.all(study.orders() > 1.8)
    assert study.to_json()["constant_ours"] < study.to_json()["constant_paper"]
