"""How the modulation moves: the derivative of attention is a mean of derivatives plus a covariance.

    A = E_alpha[v],     DA = E_alpha[Dv] + Cov_alpha(Ds, v),     alpha = softmax over cells of the scores s.

Two bounds of ||DA|| over the ball; the smaller is taken:
    boxes    every score stays in an interval, so every weight does, l_y <= alpha_y <= h_y, and
             ||DA|| <= max E[||Dv||] + (max E[(Ds - c)²])^{1/2} (max E[||v - v_0||²])^{1/2},
             maxima over the weights of that box that sum to one, for any number c and vector v_0.
    local    the derivative with the weights at the centre, plus the change of weights, scores and values.
Proofs are in docs/theory.md. Shapes: one sample; cells N, inputs n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from spectrakan.nn.axis import Axis
from spectrakan.nn.modulation import GlobalModulation, volume_logits
from spectrakan.theory.signal import Signal, Stage
from spectrakan.theory.tangent import ROUNDING, Tangent, ball, nan_to_inf, sup_to_two, top_eigenvalue


@dataclass(frozen=True)
class CellRates:
    """How fast each cell's features, behind a matrix, can move: `rates` `(N,)`, `values` `(N, rows)`."""

    values: Tensor
    rates: Tensor

    @classmethod
    def of(cls, features: Signal, matrix: Tensor) -> CellRates:
        """Of `matrix` f(y), in the Euclidean norm; matrix `(rows, channel)`."""
        channels = matrix.shape[1]
        values = (matrix @ features.value.flatten(1)).T
        middle = features.tangent.middle.view(channels, values.shape[0], -1)
        rates = sup_to_two(torch.einsum("rc,cyn->yrn", matrix, middle))
        by_ball = top_eigenvalue(matrix @ cell_blocks(features) @ matrix.T).sqrt()
        by_box = (matrix.abs() @ features.tangent.box.view(channels, -1)).norm(dim=0)
        return cls(values, nan_to_inf(rates + torch.minimum(by_ball, by_box)))

    def largest(self, stage: Stage) -> Tensor:
        """Sup over cells and ball of the Euclidean size."""
        sizes: Tensor = self.values.norm(dim=1)
        return (sizes + stage.moved(self.rates)).amax()


def cell_blocks(features: Signal) -> Tensor:
    """The diagonal blocks of the spread, `(N, channel, channel)`."""
    channels, cells = features.value.shape[0], features.value[0].numel()
    return features.tangent.spread.view(channels, cells, channels, cells).diagonal(dim1=1, dim2=3).movedim(-1, 0)


def attention_bound(
    gml: GlobalModulation, token: Signal, features: Signal, axes: Sequence[Axis]
) -> tuple[Tangent, Tensor]:
    """The set of Jacobians of A as one tangent, and the smaller of two bounds of their norms."""
    key, value = gml.key[0], gml.value[0]
    # The query in the space of the features, K^T Q t / c.
    back = key.T @ gml.query.weight / gml.divisor
    start = back @ token.value + key.T @ gml.query.bias / gml.divisor
    query = Signal(start, token.tangent.times(back), token.stage)
    flat = features.value.flatten(1)
    scores = query.value @ flat
    volumes = volume_logits(axes, flat)
    logits = scores if volumes is None else scores + volumes
    weights = logits.softmax(-1)
    values, score = CellRates.of(features, value), _score_rates(query, features, weights)
    centred = values.values - weights @ values.values
    cells = _Cells(values.rates, centred, features.stage.moved(values.rates), score)
    box = WeightBox.around(logits, features.stage.moved(score.any, together=True), weights)
    covariance = (box.mean(score.any.square()) * box.mean(cells.distance.square())).sqrt()
    by_boxes = nan_to_inf(box.mean(values.rates) + covariance) * (1 + ROUNDING)

    # Linear in features and query at the centre: alpha (V + (v - mean) q^T) and alpha (v - mean) f^T.
    on_features = torch.einsum("y,vc->vcy", weights, value)
    on_features = on_features + torch.einsum("y,yv,c->vcy", weights, centred, query.value)
    on_query = torch.einsum("y,yv,cy->vc", weights, centred, flat)
    linear = features.tangent.times(on_features.flatten(1)) + query.tangent.times(on_query)
    beyond = nan_to_inf(_beyond_linear(cells, box))
    by_local = linear.bound() + beyond
    if by_boxes < by_local:
        return ball(linear.middle, by_boxes), by_boxes
    return linear + ball(linear.middle, beyond), by_local


@dataclass(frozen=True)
class WeightBox:
    """Softmax weights over the ball, `(N,)` each: at the `centre`, bounds `low`, `high`; `moved` is of the scores.

    Softmax ignores a constant that is added to all scores, so `moved` is counted up to one.
    """

    centre: Tensor
    low: Tensor
    high: Tensor
    moved: Tensor

    @classmethod
    def around(cls, logits: Tensor, moved: Tensor, weights: Tensor) -> WeightBox:
        """Weights whose scores stay within `moved` `(N,)` of `logits`; alpha_y is largest where only s_y is high.

        >>> box = WeightBox.around(torch.zeros(2).double(), torch.ones(2).double(), torch.full((2,), 0.5).double())
        >>> torch.allclose(box.high, torch.tensor([2.0, 2.0]).double().sigmoid())
        True
        """
        low, high = logits - moved, logits + moved
        least, most = (_one_against_others(*ends) for ends in ((low, high), (high, low)))
        # Undefined where scores have no finite interval: a weight is then any number of [0, 1].
        least = torch.minimum(least.nan_to_num(0.0), weights) * (1 - 1e-12)
        most = torch.maximum(most.nan_to_num(1.0), weights) * (1 + 1e-12)
        return cls(weights, least, most, moved)

    def mean(self, rates: Tensor) -> Tensor:
        """The largest sum_y alpha_y rates_y over the box and sum_y alpha_y = 1, for rates >= 0.

        The maximum of a linear function: weights start at `low`, and what is left to one goes to the largest rates.
        """
        order = rates.argsort(descending=True)
        room = (self.high - self.low)[order]
        before = room.cumsum(0) - room
        extra = torch.minimum((1 - self.low.sum() - before).clamp_min(0.0), room)
        return ((self.low[order] + extra) * rates[order]).sum()

    @property
    def change(self) -> Tensor:
        """The largest change of each weight, `(N,)`."""
        return torch.maximum(self.high - self.centre, self.centre - self.low)


def _one_against_others(one: Tensor, others: Tensor) -> Tensor:
    """exp(one_y) / (exp(one_y) + sum_{z != y} exp(others_z)) for every y, `(N,)`."""
    ends = [F.pad(row.logcumsumexp(0)[:-1], (1, 0), value=-torch.inf) for row in (others, others.flip(0))]
    return (one - torch.logaddexp(ends[0], ends[1].flip(0))).sigmoid()


@dataclass(frozen=True)
class _ScoreRates:
    """How fast scores move, `(N,)` each: at the centre `middle`, around their mean, and what varies `extra`.

    `varies` is the part of `extra` that is not linear in features and query.
    """

    middle: Tensor
    extra: Tensor
    varies: Tensor

    @property
    def any(self) -> Tensor:
        """|Ds(y) - c| anywhere in the ball."""
        return nan_to_inf(self.middle + self.extra)


@dataclass(frozen=True)
class _Cells:
    """What the bounds need of every cell: rates of values `(N,)`, `centred` `(N, values)`, `moved` `(N,)`, scores."""

    rates: Tensor
    centred: Tensor
    moved: Tensor
    score: _ScoreRates

    @property
    def distance(self) -> Tensor:
        """||v(y) - v_0|| anywhere in the ball, v_0 the mean at its centre."""
        sizes: Tensor = self.centred.norm(dim=1) + self.moved
        return sizes


def _score_rates(query: Signal, features: Signal, weights: Tensor) -> _ScoreRates:
    """Ds(y) = <q, Df(y)> + <f(y), Dq> with q and f near those of the centre."""
    stage = features.stage
    channels, cells = features.value.shape[0], features.value[0].numel()
    flat = features.value.flatten(1)
    middle = torch.einsum("c,cyn->yn", query.value, features.tangent.middle.view(channels, cells, -1))
    middle = middle + flat.T @ query.tangent.middle
    rows = (middle - weights @ middle).abs().sum(1)
    by_ball = torch.einsum("c,ycd,d->y", query.value, cell_blocks(features), query.value).clamp_min(0).sqrt()
    linear = torch.minimum(by_ball, query.value.abs() @ features.tangent.box.view(channels, -1))
    by_ball = torch.einsum("cy,cd,dy->y", flat, query.tangent.spread, flat).clamp_min(0).sqrt()
    linear = linear + torch.minimum(by_ball, query.tangent.box @ flat.abs())
    whole = CellRates.of(features, torch.eye(channels, dtype=flat.dtype)).rates
    query_rate = query.tangent.bound()
    by_size = stage.moved(query_rate) * whole + query_rate * stage.moved(whole)
    query_reach, reach = query.tangent.reach(), features.tangent.reach()
    by_entry = stage.moved(query_reach) @ reach.view(channels, -1)
    by_entry = by_entry + query_reach @ stage.moved(reach).view(channels, -1)
    crossed = torch.minimum(nan_to_inf(by_size), nan_to_inf(by_entry))
    return _ScoreRates(rows, linear + crossed, crossed)


def _beyond_linear(cells: _Cells, box: WeightBox) -> Tensor:
    """How far the derivative can be from the one with weights, query and values of the centre."""

    def typical(rate: Tensor) -> Tensor:
        return (box.centre @ rate.square()).sqrt()

    score, change, distance = cells.score, box.change, cells.distance
    covariance = torch.einsum("y,yv,yw->vw", box.centre, cells.centred, cells.centred)
    values_any = top_eigenvalue(covariance).sqrt() + typical(cells.moved)
    scores_any = typical(score.any)
    by_factor = torch.expm1(2 * box.moved.amax()) * (box.centre @ cells.rates)
    by_weights = torch.minimum(nan_to_inf(by_factor), nan_to_inf(change @ cells.rates))
    by_factor = torch.expm1(4 * box.moved.amax()) * scores_any * values_any
    by_change = change @ (score.any * distance)
    by_change = by_change + (change @ score.any) * (box.centre @ cells.moved + change @ distance)
    by_change = by_change + (box.centre @ score.extra) * (change @ distance)
    by_covariance = torch.minimum(nan_to_inf(by_factor), nan_to_inf(by_change))
    return by_weights + by_covariance + typical(score.varies) * values_any + scores_any * typical(cells.moved)
