"""The residual rectified layer in one piece against the same from torch's own parts."""

from __future__ import annotations

import torch
from torch import nn

from spectrakan.nn.feed_forward import add_rectified


def _plain(start, field, widen, narrow):
    hidden = torch.relu(torch.einsum("oc,cb...->ob...", widen.weight, field) + widen.bias.view(-1, 1, 1))
    return start + torch.einsum("oc,cb...->ob...", narrow.weight, hidden) + narrow.bias.view(-1, 1, 1)


def test_values_and_gradients_are_those_of_the_parts(generator):
    widen, narrow = nn.Linear(3, 6).double(), nn.Linear(6, 3).double()
    start, field = (
        torch.randn(3, 2, 5, dtype=torch.float64, generator=generator, requires_grad=True) for _ in range(2)
    )
    inputs = [start, field, *widen.parameters(), *narrow.parameters()]
    fast, plain = add_rectified(start, field, widen, narrow), _plain(start, field, widen, narrow)
    assert (fast - plain).abs().max() < 1e-12
    probe = torch.randn(fast.shape, dtype=torch.float64, generator=generator)
    ours, theirs = (torch.autograd.grad((each * probe).sum(), inputs) for each in (fast, plain))
    assert all((one - other).abs().max() < 1e-12 for one, other in zip(ours, theirs, strict=True))


def test_gradients_can_be_differentiated(generator):
    widen, narrow = nn.Linear(2, 4).double(), nn.Linear(4, 2).double()
    start, field = (
        torch.randn(2, 1, 3, dtype=torch.float64, generator=generator, requires_grad=True) for _ in range(2)
    )
    assert torch.autograd.gradgradcheck(
        lambda start, field: add_rectified(start, field, widen, narrow), (start, field)
    )
