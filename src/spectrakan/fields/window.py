"""One training example: what the operator sees and what it should say."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from spectrakan.fields.grid import Grid


@dataclass(frozen=True, eq=False)
class Window:
    """A batch of consecutive frames, in physical units.

    `inputs` `(batch, history, *space, in_channels)` are followed in time by
    `targets` `(batch, horizon, *space, out_channels)`; `params` `(batch, num_params)` or None.
    `observed` `(batch, 1, *space, 1)` marks the cells of the targets that a loss may look at; None means all.
    `times` `(batch, history + horizon)` are the instants of the frames, float64; None where they are not known.
    """

    inputs: Tensor
    targets: Tensor
    params: Tensor | None = None
    grid: Grid | None = None
    observed: Tensor | None = None
    times: Tensor | None = None
