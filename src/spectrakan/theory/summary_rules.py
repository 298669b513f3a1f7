"""Rules of the parts of a summary (`nn/summary`, `nn/token`), each one operation with finite bounds in every ball.

    ridge     w = (G'G + eps^2)^-1 G'd         |w| <= |d| / (2 eps)
    turns     f = N(x) / (|x|^2 + 2 eps^2)     N quadratic with |N(x)| = |x|^2, so |f| < 1
    spread    f = (M(x^2) + c)^(1/2)           M a mean: convex, and Lipschitz with 1 in M's norm

Changes are bounded in Euclidean norms of whole groups of numbers (`Motion.sizes`). Proofs are in docs/theory.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.nn.summary import EPSILON, FAINT, ridge, turns
from spectrakan.theory.norms import ROUNDING, nan_to_inf, sup_to_two
from spectrakan.theory.rules import JointMotion, Motion, Rest, Rule

Sides = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class _System:
    """A system in some coordinates: norms of (H + change)^-1, of its product with G', and both at the centre."""

    inverse: Tensor
    pulled: Tensor
    inverse_0: Tensor
    pulled_0: Tensor
    most: Tensor
    """Norm of G at the centre."""

    def bounds(
        self, turned: Tensor, moved: Tensor, left: Tensor, by_columns: Tensor, by_right: Tensor
    ) -> list[Tensor]:
        """|w' - w| and |w' - w - l|: `turned` bounds E, `moved` f - E w, `left` the residual at the centre.

        Then of derivatives, with `by_columns` bounding DE and `by_right` Dd - DE w: |Dw'| and |Dw' - l|.
        """
        twisted = turned * (self.pulled * self.inverse_0 + self.inverse * self.pulled_0)
        straight = (self.inverse + self.pulled * self.pulled_0) * turned
        change = self.inverse * turned * left + self.pulled * moved
        later = left + moved + (self.most + turned) * change
        whole = self.inverse * by_columns * later + self.pulled * (by_right + by_columns * change)
        bent = by_columns * (self.inverse * (later - left) + twisted * left + self.pulled * change)
        return [change, left * turned * twisted + straight * moved, whole, bent + straight * by_right]


class Ridge(Rule):
    """Columns G `(1, rows, field, n)` and right-hand sides d `(1, rows, field)` to w `(1, field, n)`."""

    joined = True

    def __init__(self, columns: Tensor, right: Tensor) -> None:
        super().__init__(ridge(columns, right), columns, right)
        matrix = columns[0].movedim(1, 0)
        unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
        self.gram = matrix.mT @ matrix + EPSILON**2 * unit
        self.inverse = torch.linalg.inv(self.gram)
        self.left = right - torch.einsum("brfn,bfn->brf", columns, self.out)
        self.turning = torch.ones_like(self.out)

    def relax(self, *motions: Motion) -> None:
        """No linear part where it would leave more than the whole change."""
        change, rest, *_ = self._bounds(*motions)
        self.turning = (rest <= change).to(rest)

    def linear(self, *changes: Tensor) -> Tensor:
        """H^-1 (E'(d - G w) + G'(f - E w)), where there is a linear part."""
        columns, right = changes
        moved = right - torch.einsum("brfn,fn->brf", columns, self.out[0])
        pulled = torch.einsum("brfn,rf->bfn", columns, self.left[0])
        pulled = pulled + torch.einsum("rfn,brf->bfn", self.centres[0][0], moved)
        return self.turning * torch.einsum("fmn,bfn->bfm", self.inverse, pulled)

    def rest(self, *motions: Motion) -> Rest:
        """The smaller of bounds in the law's own coordinates and in whitened ones; the range |d| / (2 eps)."""
        change, rest, whole, rate = self._bounds(*motions)
        largest = nan_to_inf((motions[1].centre.norm(dim=1) + motions[1].sizes(1)[0]) / (2 * EPSILON))[..., None]
        return _chosen(self.turning > 0, (change, rest, whole, rate), largest - self.out, largest + self.out)

    def _bounds(self, *motions: Motion) -> list[Tensor]:
        """Change, rest of the linear part, rate, and rate of the rest: `(1, field, n)`, each the smaller of two."""
        columns, right = motions
        (by_column, pace_column), (by_right, pace_right) = columns.sizes(1), right.sizes(1)
        size = self.out.abs()
        moved, pace = by_right + (by_column * size).sum(-1), pace_right + (pace_column * size).sum(-1)
        own = self._own(by_column.norm(dim=-1))
        left = self.left.norm(dim=1)
        found = own.bounds(by_column.norm(dim=-1), moved, left, pace_column.norm(dim=-1), pace)
        turned, paced = (self._whitened(each) for each in (by_column, pace_column))
        room = (1 - turned).clamp_min(0.0)
        one = torch.ones_like(room)
        white = _System(1 / room.square(), 1 / room, one, one, one).bounds(turned, moved, left, paced, pace)
        scale = self.inverse.diagonal(dim1=-2, dim2=-1).sqrt()[None]
        bounds = [
            nan_to_inf(torch.minimum(nan_to_inf(a[..., None]), nan_to_inf(b[..., None] * scale))) * (1 + ROUNDING)
            for a, b in zip(found, white, strict=True)
        ]
        if columns.joint is not None and right.joint is not None:
            near = self._near(columns.joint, right.joint)
            bounds[:2] = [torch.minimum(*pair) for pair in zip(bounds[:2], near, strict=True)]
        return bounds

    def _near(self, columns: JointMotion, right: JointMotion) -> Sides:
        """Change and rest by the series of (I + K)^-1, term by term, infinite where it may diverge."""
        found = [self._near_field(number, columns, right) for number in range(self.out.shape[1])]
        change, rest = (nan_to_inf(torch.stack(each)[None] * (1 + ROUNDING)) for each in zip(*found, strict=True))
        return change, rest

    def _near_field(self, field: int, columns: JointMotion, right: JointMotion) -> Sides:
        radius, inverse = columns.radius, self.inverse[field]
        matrix, left, out = self.centres[0][0, :, field], self.left[0, :, field], self.out[0, field]
        turned, moved = columns.jacobian[0, :, field], right.jacobian[0, :, field]
        turned_rest, moved_rest = columns.beyond[0, :, field, :, 0], right.beyond[0, :, field, 0]
        moved = moved - torch.einsum("rni,n->ri", turned, out)
        moved_rest = moved_rest + turned_rest @ out.abs()
        pulled, size = inverse @ matrix.T, inverse.abs()
        spread = torch.einsum("mn,rni->mri", inverse, turned)
        # Numbers that are linear in the input's change: P E, H^-1 E'G, and l.
        first = radius * torch.einsum("mr,rni->mni", pulled, turned).abs().sum(-1) + pulled.abs() @ turned_rest
        second = radius * torch.einsum("mri,rn->mni", spread, matrix).abs().sum(-1)
        second = second + size @ turned_rest.T @ matrix.abs()
        line = torch.einsum("mri,r->mi", spread, left) + pulled @ moved
        linear = radius * line.abs().sum(-1) + size @ (turned_rest.T @ left.abs()) + pulled.abs() @ moved_rest
        # Norms of H^-1 E', E and g.
        spreads = radius * sup_to_two(spread) + (turned_rest @ size).norm(dim=0)
        sizes = radius * sup_to_two(turned.transpose(0, 1)) + turned_rest.norm(dim=0)
        bent = spreads * (radius * sup_to_two(moved) + moved_rest.norm())
        series = first + second + spreads[:, None] * sizes
        unit = torch.eye(len(series), dtype=series.dtype)
        if not bool(series.isfinite().all()) or float(torch.linalg.eigvals(series).abs().amax()) > 1 - 1e-6:
            return (torch.full_like(out, torch.inf),) * 2
        change = torch.linalg.solve(unit - series, linear + bent)
        return change, bent + series @ change

    def _own(self, turned: Tensor) -> _System:
        """Norms by the least singular value of G, from which `turned` may take."""
        squares = torch.linalg.eigvalsh(self.gram) - EPSILON**2
        least, most = squares[..., 0].clamp_min(0).sqrt()[None], squares[..., -1].clamp_min(0).sqrt()[None]
        least = (least * (1 - ROUNDING) - 1e-9 * most).clamp_min(0.0)
        inverse_0, pulled_0 = _norms(least)
        return _System(*_norms((least - turned).clamp_min(0.0)), inverse_0, pulled_0, most)

    def _whitened(self, by_column: Tensor) -> Tensor:
        """A bound of ||E H^(-1/2)|| from norms of E's columns."""
        return torch.einsum("bfm,fmn,bfn->bf", by_column, self.inverse.abs(), by_column).sqrt() * (1 + ROUNDING)


def _chosen(turning: Tensor, bounds: Sequence[Tensor], above: Tensor, below: Tensor) -> Rest:
    """The rest of the linear part, or the whole change within the range, `above` and `below` the centre's value."""
    change, rest, whole, rate = bounds
    high, low = (torch.where(turning, rest, torch.minimum(change, room * (1 + ROUNDING))) for room in (above, below))
    return Rest(-nan_to_inf(low), nan_to_inf(high), nan_to_inf(torch.where(turning, rate, whole)))


def _norms(least: Tensor) -> Sides:
    """||(G'G + eps^2)^-1|| and ||(G'G + eps^2)^-1 G'|| for a G whose singular values are at least these."""
    peak = least.clamp_min(EPSILON)
    return 1 / (least.square() + EPSILON**2), peak / (peak.square() + EPSILON**2)


class Turns(Rule):
    """Real and imaginary coefficients `(1, 2, k, field)` each to the three numbers of a wave, `(1, 3, k, field)`."""

    joined = True

    def __init__(self, real: Tensor, imaginary: Tensor) -> None:
        super().__init__(turns(real, imaginary), real, imaginary)
        given = torch.cat([real, imaginary], dim=1)
        self.point = given.square().sum(1).sqrt()
        inner = given.clone().requires_grad_()
        with torch.enable_grad():
            out = turns(*inner.chunk(2, dim=1))
            rows = [torch.autograd.grad(out[0, number].sum(), inner, retain_graph=True)[0][0] for number in range(3)]
        self.slopes = torch.stack(rows)
        self.turning = torch.ones_like(self.out)

    def relax(self, *motions: Motion) -> None:
        """No linear part where it would leave more than the whole change."""
        change, rest, *_ = self._bounds(*motions)
        self.turning = (rest <= change).to(rest)

    def linear(self, *changes: Tensor) -> Tensor:
        """Slopes times changes, where there is a linear part."""
        return self.turning * torch.einsum("ockf,bckf->bokf", self.slopes, torch.cat(changes, dim=1))

    def rest(self, *motions: Motion) -> Rest:
        """By second differences, or by the range."""
        return _chosen(self.turning > 0, self._bounds(*motions), 1 - self.out, 1 + self.out)

    def _bounds(self, *motions: Motion) -> list[Tensor]:
        """Change, rest of the linear part, rate, and rate of the rest: `(1, 3, k, field)`."""
        found = zip(*(motion.sizes(1) for motion in motions), strict=True)
        moved, pace = (torch.hypot(*each)[:, None].expand_as(self.out) for each in found)
        point, faint = self.point[:, None], 2 * FAINT**2
        later = (point - moved).clamp_min(0.0).square() + faint
        steep, value = self.slopes.norm(dim=1)[None], self.out.abs()
        reach = moved.square()
        # n' - n = 2 x d + |d|^2, and the quadratic part of N - f n is at most 1 + |f|.
        rest = (steep * moved * (2 * point * moved + reach) + (1 + value) * reach) / later
        steepest = 2 * _peak(point, moved, faint)
        change = torch.minimum(nan_to_inf(steepest * moved), 1 + value)
        rest = nan_to_inf(rest)
        bend = 2 * (2 * moved + torch.minimum(steep * moved + rest, change) * point) / later
        bend = nan_to_inf(bend + steep * (2 * point * moved + reach) / later)
        bend = torch.minimum(bend, steepest + steep)
        return [each * (1 + ROUNDING) for each in (change, rest, steepest * pace, bend * pace)]


def _peak(point: Tensor, moved: Tensor, faint: float) -> Tensor:
    """The largest p / (p^2 + faint) over distances p within `moved` of a point's."""
    best = torch.as_tensor(faint).sqrt().to(point).expand_as(moved)
    nearest = torch.minimum(torch.maximum(best, (point - moved).clamp_min(0.0)), point + moved)
    return nearest / (nearest.square() + faint)


class Spread(Rule):
    """Deviations x `(1, history, *space, field)` to (M(x^2) + c)^(1/2), M a weighted mean over space."""

    def __init__(
        self, function: Callable[[Tensor], Tensor], mean: Callable[[Tensor], Tensor], centre: Tensor
    ) -> None:
        super().__init__(function(centre), centre)
        self.mean, self.least = mean, function(torch.zeros_like(centre))

    def linear(self, *changes: Tensor) -> Tensor:
        """M(x_0 d) / f_0."""
        return self.mean(self.centres[0] * changes[0]) / self.out

    def rest(self, *motions: Motion) -> Rest:
        """A convex function lies above its tangent."""
        (motion,) = motions
        squared, pace = (self.mean(each.square()) for each in (motion.reach, motion.rate))
        moved, speed = squared.sqrt(), pace.sqrt()
        high = torch.minimum(nan_to_inf(squared / (2 * self.out)), nan_to_inf(2 * moved)) * (1 + ROUNDING)
        bend = moved / torch.maximum(self.least, self.out - moved)
        rate = nan_to_inf(torch.minimum(nan_to_inf(bend), torch.full_like(bend, 2.0)) * speed * (1 + ROUNDING))
        return Rest(torch.zeros_like(high), high, rate)
