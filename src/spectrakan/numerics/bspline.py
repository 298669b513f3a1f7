"""B-splines of any order on non-uniform knots, by the triangular recursion over the non-zero ones.

With knots t_0 < ... < t_{n+k} there are n basis functions B_r of degree k, B_r living on [t_r, t_{r+k+1}]:
    B_r^0(x) = 1 on [t_r, t_{r+1}), else 0,
    B_r^p(x) = (x - t_r)/(t_{r+p} - t_r) B_r^{p-1}(x) + (t_{r+p+1} - x)/(t_{r+p+1} - t_{r+1}) B_{r+1}^{p-1}(x).
At any x only k + 1 of them differ from zero; `local_basis` computes just those.
Shapes: x `(inputs, batch)`, knots `(inputs, n + k + 1)`: every input has knots of its own, and the batch runs
fastest so that each step of the recursion is one pass over contiguous numbers.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def find_interval(
    x: Float[Tensor, "inputs batch"], knots: Float[Tensor, "inputs knots"]
) -> Int[Tensor, "inputs batch"]:
    """Index i with t_i <= x < t_{i+1}, clamped to the knots' range, `(inputs, batch)`."""
    if torch.compiler.is_exporting():  # ONNX has no binary search; the knots are few
        found = (knots[:, :, None] <= x[:, None]).sum(1) - 1
    else:
        found = torch.searchsorted(knots.detach().contiguous(), x.detach().contiguous(), right=True) - 1
    return found.clamp(0, knots.shape[-1] - 2)


def local_basis(
    x: Float[Tensor, "inputs batch"],
    knots: Float[Tensor, "inputs knots"],
    interval: Int[Tensor, "inputs batch"],
    order: int,
    beyond: Float[Tensor, "inputs batch"] | None = None,
) -> Float[Tensor, "inputs local batch"]:
    """The order + 1 basis functions that live on each x's knot interval.

    Entry j belongs to basis function interval - order + j. Its index may lie outside 0 .. n - 1 near the ends,
    where knots are continued evenly; such entries are not part of the spline and are to be dropped.
    `beyond` adds that multiple of each function's slope at x: B(x) + beyond B'(x), the straight continuation.
    """
    # The knots t_{i-order+1} .. t_{i+order} around each x, `(inputs, 2 order, batch)`.
    steps = torch.arange(1, max(order, 1), device=knots.device, dtype=knots.dtype)
    before = knots[:, :1] - steps.flip(0) * (knots[:, 1:2] - knots[:, :1])
    after = knots[:, -1:] + steps * (knots[:, -1:] - knots[:, -2:-1])
    index = interval[:, None] + torch.arange(2 * order, device=knots.device)[:, None]
    near = torch.cat([before, knots, after], dim=1).gather(1, index.flatten(1)).view(index.shape)
    away = x[:, None] - near
    basis = torch.ones_like(x)[:, None]
    for degree in range(1, order + 1):
        below, above = away[:, order - degree : order], away[:, order : order + degree]
        shares = basis / (below - above)
        if degree == order and beyond is not None:
            # The same shares make the slope, B_j' = k (share_{j-1} - share_j): it costs a shift of both factors.
            step = order * beyond[:, None]
            below, above = below + step, above + step
        rising, falling = below * shares, above * shares
        middle = rising[:, :-1] - falling[:, 1:]
        basis = torch.cat([-falling[:, :1], middle, rising[:, -1:]], dim=1)
    return basis


def scatter_basis(
    local: Float[Tensor, "inputs local batch"], interval: Int[Tensor, "inputs batch"], num_basis: int
) -> Float[Tensor, "inputs basis batch"]:
    """Put the order + 1 local values at their indices among all functions, dropping those outside."""
    order = local.shape[1] - 1
    padded = local.new_zeros(local.shape[0], num_basis + 2 * order, local.shape[2])
    index = interval[:, None] + torch.arange(order + 1, device=interval.device)[:, None]
    return padded.scatter(1, index, local)[:, order : order + num_basis]


def evaluate_basis(
    x: Float[Tensor, "inputs batch"], knots: Float[Tensor, "inputs knots"], order: int
) -> Float[Tensor, "inputs basis batch"]:
    """All basis functions at x, `(inputs, num_basis, batch)`; zero outside the knots."""
    interval = find_interval(x, knots)
    inside = (x >= knots[:, :1]) & (x < knots[:, -1:])
    local = local_basis(x, knots, interval, order) * inside[:, None]
    return scatter_basis(local, interval, knots.shape[-1] - order - 1)
