"""The pre-norm attention block, among one set of tokens or from one set to another.

    x = x + W_o [softmax(q_h k_h^T / sqrt(d_head)) v_h]_h,     q from LN(x), k and v from LN(context)
    x = x + W_2 gelu(W_1 LN(x) + b_1) + b_2
Without a context the tokens attend to each other. Shapes: x `(batch, tokens, width)`, context
`(batch, others, width)`; an x of batch 1 asks the contexts of all samples the same questions.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from spectrakan.errors import ConfigError


class AttentionBlock(nn.Module):
    """See the file's equations; `cross=True` for a block that is always given a context."""

    def __init__(self, width: int, num_heads: int, *, mlp_ratio: int = 1, cross: bool = False) -> None:
        super().__init__()
        if width % num_heads:
            raise ConfigError(f"an attention width must be a multiple of its heads, got {width} and {num_heads}")
        self.num_heads = num_heads
        self.norm = nn.LayerNorm(width)
        self.context_norm = nn.LayerNorm(width) if cross else None
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, mlp_ratio * width), nn.GELU(), nn.Linear(mlp_ratio * width, width))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Let the tokens x ask the context, or each other."""
        asked = self.norm(x)
        seen = asked if self.context_norm is None or context is None else self.context_norm(context)
        query = self._heads(self.query(asked)).expand(seen.shape[0], -1, -1, -1)
        key, value = (self._heads(part) for part in self.key_value(seen).chunk(2, dim=-1))
        answer = F.scaled_dot_product_attention(query, key, value)
        x = x + self.out(answer.transpose(1, 2).flatten(2))
        changed: Tensor = x + self.feed(self.feed_norm(x))
        return changed

    def _heads(self, rows: Tensor) -> Tensor:
        heads: Tensor = rows.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        return heads
