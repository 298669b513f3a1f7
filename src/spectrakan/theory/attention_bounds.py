"""How the modulation moves: the derivative of attention is a mean of derivatives plus a covariance.

    A = E_alpha[v],     DA = E_alpha[Dv] + Cov_alpha(Ds, v),     alpha = softmax over cells of the scores s,

so ||DA|| <= sup_y ||Dv(y)|| + sd(Ds) sd(v): no exponential of the scores comes in, whatever alpha is. Two bounds:
    spread   sup_y ||Dv(y)|| + sup_y |Ds(y) - c| sup_y ||v(y) - v_0||      for any number c and vector v_0,
    local    the derivative with the weights at the centre, plus what weights, scores and values can change:
             with |s - s_c - const| <= eps the weights stay within e^{+-2 eps} of theirs, and
             ||Cov_alpha(a, b) - Cov_c(a, b)|| <= (e^{4 eps} - 1) sd_c(a) sd_c(b).
Both hold; the smaller is taken. Shapes: one sample, one head; cells N, inputs n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.nn.axis import Axis
from spectrakan.nn.modulation import GlobalModulation, volume_logits
from spectrakan.theory.norms import sup_to_two, top_eigenvalue
from spectrakan.theory.signal import Signal, Stage
from spectrakan.theory.tangent import Tangent


@dataclass(frozen=True)
class CellRates:
    """How fast each cell's features, seen through a matrix, can move: `rates` `(N,)`, `values` `(N, rows)`."""

    values: Tensor
    rates: Tensor

    @classmethod
    def of(cls, features: Signal, matrix: Tensor) -> CellRates:
        """Of `matrix` f(y), in the Euclidean norm; matrix `(rows, channel)`."""
        channels = matrix.shape[1]
        values = (matrix @ features.value.flatten(1)).T
        middle = features.tangent.middle.view(channels, values.shape[0], -1)
        rates = sup_to_two(torch.einsum("rc,cyn->yrn", matrix, middle))
        if features.tangent.spread is not None and features.tangent.box is not None:
            blocks = cell_blocks(features)
            by_ball = top_eigenvalue(matrix @ blocks @ matrix.T).sqrt()
            by_box = (matrix.abs() @ features.tangent.box.view(channels, -1)).norm(dim=0)
            rates = rates + torch.minimum(by_ball, by_box)
        return cls(values, rates)

    def largest(self, stage: Stage) -> Tensor:
        """Sup over cells and ball of the Euclidean size."""
        sizes: Tensor = self.values.norm(dim=1)
        return (sizes + stage.moved(self.rates)).amax()


def cell_blocks(features: Signal) -> Tensor:
    """The diagonal blocks of the spread, `(N, channel, channel)`."""
    channels = features.value.shape[0]
    if features.tangent.spread is None:
        return torch.zeros(features.value[0].numel(), channels, channels, dtype=torch.float64)
    return (
        features.tangent.spread.view(channels, -1, channels, features.value[0].numel())
        .diagonal(dim1=1, dim2=3)
        .movedim(-1, 0)
    )


@dataclass(frozen=True)
class HeadBound:
    """What is known of one head: its set of Jacobians as one tangent, the bound, and the parts of the bound."""

    tangent: Tangent
    bound: Tensor
    score_rate: Tensor
    value_rate: Tensor


def head_bound(gml: GlobalModulation, head: int, token: Signal, features: Signal, axes: Sequence[Axis]) -> HeadBound:
    """Both bounds of the file's head for one head."""
    stage = features.stage
    seen = _feature_query(gml, head, token)
    flat = features.value.flatten(1)
    scores = seen.value @ flat
    logits = volume_logits(axes, flat)
    weights = (scores if logits is None else scores + logits).softmax(-1)
    values = CellRates.of(features, gml.value[head])
    mean = weights @ values.values
    centred = values.values - mean
    score = _score_rates(seen, features, weights)

    values_moved = stage.moved(values.rates)
    radius_of_values = (centred.norm(dim=1) + values_moved).amax()
    by_spread = values.rates.amax() + score.spread * radius_of_values

    # Linear in features and query at the centre: alpha (V + (v - mean) q^T) and alpha (v - mean) f^T.
    on_features = torch.einsum("y,vc->vcy", weights, gml.value[head])
    on_features = on_features + torch.einsum("y,yv,c->vcy", weights, centred, seen.value)
    on_query = torch.einsum("y,yv,cy->vc", weights, centred, flat)
    linear = features.tangent.times(on_features.flatten(1)) + seen.tangent.times(on_query)
    away = _beyond_linear(weights, values, centred, score, values_moved)
    by_local = linear.bound() + away
    if by_spread < by_local:
        return HeadBound(
            _ball(torch.zeros_like(linear.middle), by_spread), by_spread, score.spread, values.rates.amax()
        )
    return HeadBound(
        linear + _ball(torch.zeros_like(linear.middle), away), by_local, score.spread, values.rates.amax()
    )


@dataclass(frozen=True)
class _ScoreRates:
    """How fast scores move: at the centre `middle` `(N,)`, what varies `extra` `(N,)`, around their mean.

    `varies` `(N,)` is the part of `extra` that is not linear, `moved` how far any score can be from the centre's.
    """

    middle: Tensor
    extra: Tensor
    varies: Tensor
    moved: Tensor

    @property
    def spread(self) -> Tensor:
        """sup_y |Ds(y) - c|."""
        return (self.middle + self.extra).amax()


def _score_rates(seen: Signal, features: Signal, weights: Tensor) -> _ScoreRates:
    """Ds(y) = <q, Df(y)> + <f(y), Dq> with q and f near the centre's."""
    stage = features.stage
    channels, cells = features.value.shape[0], features.value[0].numel()
    flat = features.value.flatten(1)
    middle = torch.einsum("c,cyn->yn", seen.value, features.tangent.middle.view(channels, cells, -1))
    middle = middle + flat.T @ seen.tangent.middle
    rows = (middle - weights @ middle).abs().sum(1)
    linear = torch.zeros_like(rows)
    if features.tangent.box is not None:
        by_ball = torch.einsum("c,ycd,d->y", seen.value, cell_blocks(features), seen.value).clamp_min(0).sqrt()
        by_box = seen.value.abs() @ features.tangent.box.view(channels, -1)
        linear = linear + torch.minimum(by_ball, by_box)
    if seen.tangent.spread is not None and seen.tangent.box is not None:
        by_ball = torch.einsum("cy,cd,dy->y", flat, seen.tangent.spread, flat).clamp_min(0).sqrt()
        linear = linear + torch.minimum(by_ball, seen.tangent.box @ flat.abs())
    whole = CellRates.of(features, torch.eye(channels, dtype=flat.dtype)).rates
    query_rate = seen.tangent.bound()
    by_size = stage.moved(query_rate) * whole + query_rate * stage.moved(whole)
    query_reach, reach = seen.tangent.reach(), features.tangent.reach()
    by_entry = stage.moved(query_reach) @ reach.view(channels, -1)
    by_entry = by_entry + query_reach @ stage.moved(reach).view(channels, -1)
    crossed = torch.minimum(by_size, by_entry)
    return _ScoreRates(rows, linear + crossed, crossed, stage.moved((rows + linear + crossed).amax()))


def _beyond_linear(
    weights: Tensor, values: CellRates, centred: Tensor, score: _ScoreRates, values_moved: Tensor
) -> Tensor:
    """What the derivative can differ from the one with weights, query and values of the centre."""

    def typical(rate: Tensor) -> Tensor:
        return (weights @ rate.square()).sqrt()

    covariance = torch.einsum("y,yv,yw->vw", weights, centred, centred)
    values_any = top_eigenvalue(covariance).sqrt() + typical(values_moved)
    scores_any = typical(score.middle + score.extra)
    by_weights = torch.expm1(2 * score.moved) * (weights @ values.rates)
    by_covariance = torch.expm1(4 * score.moved) * scores_any * values_any
    return by_weights + by_covariance + typical(score.varies) * values_any + scores_any * typical(values_moved)


def _feature_query(gml: GlobalModulation, head: int, token: Signal) -> Signal:
    """K^T Q t / c of one head."""
    rows = slice(head * gml.attention_width, (head + 1) * gml.attention_width)
    back = gml.key[head].T / gml.divisor
    matrix = back @ gml.query.weight[rows]
    value = matrix @ token.value + back @ gml.query.bias[rows]
    return Signal(value, token.tangent.times(matrix), token.stage)


def _ball(middle: Tensor, size: Tensor) -> Tangent:
    """A Euclidean ball of Jacobians."""
    rows = middle.shape[0]
    spread = size.square() * torch.eye(rows, dtype=middle.dtype)
    return Tangent(middle, spread, size.expand(rows).clone(), (rows,))
