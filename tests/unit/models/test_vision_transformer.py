"""The attention block against plain loops in float64."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from spectrakan.models.cvit import AttentionBlock


def by_loops(block: AttentionBlock, x: torch.Tensor, context: torch.Tensor | None) -> torch.Tensor:
    """One sample `(tokens, width)`."""
    width = x.shape[1]
    size = width // block.num_heads
    asked = F.layer_norm(x, (width,), block.norm.weight, block.norm.bias)
    seen = asked
    if context is not None:
        seen = F.layer_norm(context, (width,), block.context_norm.weight, block.context_norm.bias)
    query, both = asked @ block.query.weight.T + block.query.bias, seen @ block.key_value.weight.T
    both = both + block.key_value.bias
    joined = torch.zeros_like(x)
    for h in range(block.num_heads):
        q, k, v = (slice(start + h * size, start + (h + 1) * size) for start in (0, 0, width))
        for i in range(len(x)):
            scores = torch.stack([query[i, q] @ both[j, k] / math.sqrt(size) for j in range(len(seen))])
            joined[i, q] = sum(share * both[j, v] for j, share in enumerate(scores.softmax(0)))
    x = x + joined @ block.out.weight.T + block.out.bias
    normed = F.layer_norm(x, (width,), block.feed_norm.weight, block.feed_norm.bias)
    first, last = block.feed[0], block.feed[2]
    return x + F.gelu(normed @ first.weight.T + first.bias) @ last.weight.T + last.bias


@pytest.mark.parametrize("cross", [False, True])
@torch.no_grad()
def test_it_is_the_sums_of_its_equations(cross, generator):
    torch.manual_seed(0)
    block = AttentionBlock(6, 2, mlp_ratio=2, cross=cross).double()
    for parameter in block.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    x = torch.randn(3, 4, 6, dtype=torch.float64, generator=generator)
    context = torch.randn(3, 5, 6, dtype=torch.float64, generator=generator) if cross else None
    ours = block(x, context)
    for n in range(3):
        expected = by_loops(block, x[n], None if context is None else context[n])
        assert torch.allclose(ours[n], expected, atol=1e-12)


def test_one_set_of_questions_asks_every_sample(generator):
    torch.manual_seed(0)
    block = AttentionBlock(6, 3, cross=True).double()
    x = torch.randn(1, 4, 6, dtype=torch.float64, generator=generator)
    context = torch.randn(5, 7, 6, dtype=torch.float64, generator=generator)
    assert torch.allclose(block(x, context), block(x.expand(5, -1, -1), context), atol=1e-12)
