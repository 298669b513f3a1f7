"""One complex matrix a mode, by real products: torch has no batched complex product on the CPU, it loops.

(W_r + i W_i)(x_r + i x_i) as the real matrix [[W_r, -W_i], [W_i, W_r]] on the column (x_r, x_i).
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor


def real_form(weight: Float[Tensor, "modes channel out 2"]) -> Float[Tensor, "modes rows columns"]:
    """Complex matrices, stored as pairs, as real ones that act on columns (real parts, imaginary parts)."""
    real, imaginary = weight.transpose(1, 2).unbind(-1)
    upper, lower = torch.cat([real, -imaginary], dim=2), torch.cat([imaginary, real], dim=2)
    return torch.cat([upper, lower], dim=1)


def multiply_modes(
    weight: Complex[Tensor, "modes channel out"], fields: Complex[Tensor, "channel batch modes"]
) -> Complex[Tensor, "out batch modes"]:
    """sum_i weight[k, i, o] fields[i, b, k] for each mode k."""
    modes, channels, out = weight.shape
    columns = torch.view_as_real(fields).permute(2, 3, 0, 1).reshape(modes, 2 * channels, -1)
    product = torch.bmm(real_form(torch.view_as_real(weight)), columns)
    pairs = product.view(modes, 2, out, -1).permute(2, 3, 0, 1).contiguous()
    result: Tensor = torch.view_as_complex(pairs)
    return result
