"""`torch.func`: vmap over samples, forward and reverse derivatives agree with plain calls for every network."""

from __future__ import annotations

import pytest
import torch
from small_models import SMALL
from torch.func import functional_call, grad, jvp, vmap

import spectrakan as sk

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),  # torch's own use
    pytest.mark.filterwarnings("ignore:torch.searchsorted.*non-contiguous:UserWarning"),
]
SPECTRAL = [
    ("spectrakan", {"coarse_num_layers": 1}),
    ("spectrakan", {"conditioning": "both", "block": "skip", "multiplicative_readout": True}),
    ("spectrakan", {"extension": "zero", "activation": "relu", "coarse_num_layers": 1, "coarse_mixing": "axial"}),
    ("amfno", {}),
    ("fno", {}),
    ("ffno", {}),
    ("local_fno", {}),
    ("lno", {}),
]


def built(name: str, settings: dict, dims: int) -> sk.Operator:
    torch.manual_seed(0)
    boundary = ("wall", "periodic")[:dims]
    signature = sk.OperatorSignature(space_dims=dims, history=2, in_channels=1, out_channels=1, boundary=boundary)
    sizes = SMALL.get(name, {"width": 6, "num_modes": 3, "num_layers": 2})
    return sk.build_model(name, signature, **{**sizes, **settings}).double().eval()


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize(("name", "settings"), SPECTRAL, ids=lambda value: str(value)[:40])
def test_transforms_agree_with_plain_calls(name, settings, dims, generator):
    model = built(name, settings, dims)
    x = torch.randn(3, 2, *[12] * dims, 1, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        plain = model(x)
        one_by_one = vmap(lambda sample: model(sample[None])[0])(x)
    torch.testing.assert_close(one_by_one, plain, atol=1e-10, rtol=1e-8)

    direction = torch.randn(x.shape, generator=generator, dtype=torch.float64)
    value, tangent = jvp(model, (x,), (direction,))
    torch.testing.assert_close(value.detach(), plain, atol=1e-10, rtol=1e-8)
    step = 1e-6
    with torch.no_grad():
        slope = (model(x + step * direction) - model(x - step * direction)) / (2 * step)
    torch.testing.assert_close(tangent.detach(), slope, atol=1e-5, rtol=1e-5)

    gradient = grad(lambda field: model(field).square().sum())(x)
    leaf = x.clone().requires_grad_()
    model(leaf).square().sum().backward()
    torch.testing.assert_close(gradient, leaf.grad, atol=1e-8, rtol=1e-8)


def test_weights_can_be_differentiated_per_sample(generator):
    model = built("spectrakan", {}, 1)
    x = torch.randn(3, 2, 12, 1, generator=generator, dtype=torch.float64)
    weights = dict(model.named_parameters())

    def loss(parameters, sample):
        return functional_call(model, parameters, (sample[None],)).square().sum()

    each = vmap(grad(loss), in_dims=(None, 0))({key: value.detach() for key, value in weights.items()}, x)
    model(x).square().sum().backward()
    for key, value in weights.items():
        torch.testing.assert_close(each[key].sum(0), value.grad, atol=1e-7, rtol=1e-7, msg=key)
