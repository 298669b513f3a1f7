"""Truncated transforms along one axis as real matrices, for four bases.

On cells with centres x_j in [0, 1] and relative widths w_j, mode k of frequency f_k has the coefficient
    c_k = sum_j w_j v_j conj(e_k(x_j)),
and a field is the sum
    v(x_j) = sum_k a_k Re(c_k e_k(x_j)),     a_0 = 1 for the constant mode, 2 for the others.

| basis    | e_k(x)            | frequencies f_k  | coefficients | suits                                 |
|----------|-------------------|------------------|--------------|---------------------------------------|
| fourier  | exp(2 pi i k x)   | 0, 1, 2, ...     | complex      | periodic axes                         |
| cosine   | cos(pi k x)       | 0, 1/2, 1, ...   | real         | even kernels between mirrors          |
| sine     | sin(pi (k+1) x)   | 1/2, 1, 3/2, ... | real         | zero on the edge                      |
| extended | exp(2 pi i k x/p) | 0, 1/p, 2/p, ... | complex      | any edge: zeros on [1, p], p = 9/8    |

On equal cells `fourier` is `rfft(norm="forward")` up to a phase that cancels between analysis and synthesis,
and `cosine` is the DCT-II. Frequencies stay strictly below what the cells resolve, so refining a grid never
changes what a mode means. As matrix products all bases cost the same.

A multiplier on cosines alone is a convolution with an even kernel: it can smooth but not differentiate, which waves
between walls need. Complex multipliers on the extended axis represent every kernel; a gap of 1/8 keeps its modes
nearly as fine as those of a periodic axis.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

Basis = Literal["fourier", "cosine", "sine", "extended"]
EXTENDED_LENGTH = 9 / 8
"""Length p of the extended axis, of which the domain is the first part."""


def is_complex(basis: Basis) -> bool:
    """Whether the basis has complex coefficients."""
    return basis in ("fourier", "extended")


def stored_modes(basis: Basis, num_modes: int) -> int:
    """Modes with weights in a layer of `num_modes`: one complex mode corresponds to two real ones."""
    return num_modes if is_complex(basis) else 2 * num_modes


def resolved_modes(basis: Basis, num_modes: int, cells: int) -> int:
    """How many of the stored modes `cells` equal cells resolve.

    >>> resolved_modes("fourier", 12, 64), resolved_modes("fourier", 12, 16)
    (12, 8)
    """
    longer = (9 * cells + 15) // 16  # ceil(p n / 2), in whole numbers, which programs can hold
    limit = {"fourier": (cells + 1) // 2, "cosine": cells, "sine": cells - 1, "extended": longer}[basis]
    return min(stored_modes(basis, num_modes), limit)


def frequencies(basis: Basis, count: int) -> Tensor:
    """Frequencies f_k of the first `count` modes in cycles per domain length, float64."""
    order = torch.arange(count, dtype=torch.float64)
    longer = order / EXTENDED_LENGTH
    return {"fourier": order, "cosine": order / 2, "sine": (order + 1) / 2, "extended": longer}[basis]


def transform_matrices(
    basis: Basis, count: int, centres: Float[Tensor, " n"], widths: Float[Tensor, " n"]
) -> tuple[Float[Tensor, "rows n"], Float[Tensor, "n rows"]]:
    """Analysis `(rows, n)` and synthesis `(n, rows)` of `count` modes, in the type of `centres`.

    Complex bases have two rows a mode, real part first: rows = 2 count; real ones have rows = count.
    """
    order = frequencies(basis, count).to(centres)
    angle = 2 * math.pi * order[:, None] * centres
    # a_k: 1 for the constant mode, 2 for modes that represent both +k and -k.
    amplitude = torch.where(order == 0, 1.0, 2.0).to(order)
    if is_complex(basis):
        # conj(e) = cos - i sin goes in; Re(c e) = Re c cos - Im c sin comes out.
        waves = torch.stack([angle.cos(), -angle.sin()], dim=1).flatten(0, 1)
        amplitude = amplitude.repeat_interleave(2)
    else:
        waves = angle.sin() if basis == "sine" else angle.cos()
    # The extended axis is longer and zero on its last part, so each cell has a smaller share of it.
    share = widths / EXTENDED_LENGTH if basis == "extended" else widths
    return waves * share, (waves * amplitude[:, None]).T


def signed_matrices(
    basis: Basis, count: int, negative: int, centres: Float[Tensor, " n"], widths: Float[Tensor, " n"]
) -> tuple[Float[Tensor, "rows columns"], Float[Tensor, "columns rows"]]:
    """Analysis `(2 (count + negative), 2 n)` and synthesis `(2 n, 2 (count + negative))` of complex fields.

    Frequencies run over 0, 1, .., count - 1, -negative, .., -1.
    Fields and coefficients are given as their real parts followed by their imaginary parts. Joint transforms need
    them: after the first axis a field is complex, and both signs of k matter.
    """
    orders = signed_orders(count, negative)
    half = frequencies(basis, max(count, negative + 1)).to(centres)
    order = half[orders.abs()] * orders.sign()
    angle = 2 * math.pi * order[:, None] * centres
    real, imaginary = angle.cos(), angle.sin()
    waves = torch.cat([torch.cat([real, imaginary], dim=1), torch.cat([-imaginary, real], dim=1)])
    share = widths / EXTENDED_LENGTH if basis == "extended" else widths
    return waves * torch.cat([share, share]), waves.T


def signed_orders(count: int, negative: int) -> Int[Tensor, " modes"]:
    """The orders 0, 1, .., count - 1, -negative, .., -1.

    >>> signed_orders(3, 2).tolist()
    [0, 1, 2, -2, -1]
    """
    return torch.cat([torch.arange(count), torch.arange(-negative, 0)])
