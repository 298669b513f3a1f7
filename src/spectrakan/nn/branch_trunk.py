"""The product of what a branch makes of the input and what a trunk makes of a place.

    u_c(x) = sum_k b_ck(input) t_k(x) (+ bias_c)
The trunk's features are the same for all samples, so they are made once for a grid. Shapes: branch
`(batch, fields * features)`, trunk `(cells, features)` -> `(batch, cells, fields)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from spectrakan.nn.axis import Axis
from spectrakan.nn.sensors import read_sensors


def branch_trunk(
    branch: Float[Tensor, "batch coefficients"], trunk: Float[Tensor, "cells features"]
) -> Float[Tensor, "batch cells fields"]:
    """The sum over features for each sample, cell and field."""
    coefficients: Tensor = branch.unflatten(1, (-1, trunk.shape[1]))
    return (coefficients @ trunk.T).transpose(1, 2)


def sensed(
    history: Tensor, params: Tensor | None, axes: Sequence[Axis], counts: Sequence[int]
) -> Float[Tensor, "batch inputs"]:
    """What a branch sees: the history at the sensors, flattened, and the parameters behind it."""
    values = read_sensors(history, axes, counts).flatten(1)
    return values if params is None else torch.cat([values, params], dim=1)
