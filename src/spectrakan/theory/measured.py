"""The theorem's constants as measured where they cannot be proved: sampled inputs and ascent, no more.

Every number here may be exceeded by an input that was not tried; what is made of them is an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.modulation import GlobalModulation
from spectrakan.theory.attack import AttackSettings, Map, attack, euclid
from spectrakan.theory.theorem import Constants

TRIES = AttackSettings(starts=4, steps=6, pairs=4)


def measured_constants(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], radius: float
) -> tuple[Constants, ...]:
    """Constants of every head around one normalised input, each the worst of a few tries."""
    gml, token = model.gml, model.global_token
    if gml is None or token is None:
        return ()

    def told(batch: Tensor) -> Tensor | None:
        return None if params is None else params.expand(batch.shape[0], -1)

    def asked(batch: Tensor) -> Tensor:
        answer: Tensor = token(batch, told(batch), axes)
        return answer

    def features(batch: Tensor) -> Tensor:
        return model._features(batch, told(batch), axes, asked(batch)).flatten(2)

    with torch.no_grad():
        now, query = features(history)[:, 0], gml.query(asked(history))[0]
    summary_rate = attack(lambda batch: token.summary(batch, told(batch), axes), history, radius, euclid, TRIES).slope
    token_rate = attack(asked, history, radius, euclid, TRIES).slope
    found = []
    for head in range(gml.num_heads):
        rows = slice(head * gml.attention_width, (head + 1) * gml.attention_width)
        query_rate = attack(_entries(gml, asked, rows), history, radius, euclid, TRIES)
        key_rate, value_rate = (
            attack(_seen(features, part), history, radius, _cell_size, TRIES).slope for part in _parts(gml, head)
        )
        key, value = ((part @ now).norm(dim=0).max().item() for part in _parts(gml, head))
        found.append(
            Constants(
                M_q=query[rows].norm().item() + radius * query_rate.slope,
                M_k=key + radius * key_rate,
                M_v=value + radius * value_rate,
                L_k=key_rate,
                L_v=value_rate,
                Lip_q=torch.linalg.matrix_norm(gml.query.weight[rows], ord=2).item(),
                L_KAN=token_rate / max(summary_rate, 1e-12),
                L_P=summary_rate,
                divisor=gml.divisor,
            )
        )
    return tuple(found)


def _entries(gml: GlobalModulation, asked: Map, rows: slice) -> Map:
    """The query of one head."""
    return lambda batch: gml.query(asked(batch))[:, rows]


def _parts(gml: GlobalModulation, head: int) -> tuple[Tensor, Tensor]:
    return gml.key[head], gml.value[head]


def _seen(features: Map, matrix: Tensor) -> Map:
    """Features behind a matrix, `(batch, rows, cells)`."""
    return lambda batch: torch.einsum("rc,cby->bry", matrix, features(batch))


def _cell_size(difference: Tensor) -> Tensor:
    """Largest Euclidean size over cells, `(batch,)`."""
    sizes: Tensor = difference.norm(dim=1).amax(1)
    return sizes
