"""Which cells of a trajectory a loss may look at, when a field is observed only in part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from spectrakan.errors import ConfigError


def observed_cells(samples: Sequence[int], space: Sequence[int], fraction: float, seed: int = 0) -> Tensor:
    """A random share of the cells for each sample, `(len(samples), 1, *space, 1)`, True where observed.

    As in Kissas et al. (2022), the input field is known in full and only the targets are observed in part:
    the mask belongs on the loss, and the operator still predicts every cell. The cells are fixed sensors:
    they depend on (seed, sample) alone, so they are the same for all frames, fields and epochs.
    Exactly max(1, round(fraction * cells)) cells of each sample are seen.

    >>> int(observed_cells([7], (8, 8), fraction=0.25).sum())
    16
    """
    if not 0.0 < fraction <= 1.0:
        raise ConfigError(f"observed_fraction must be above 0 and at most 1, got {fraction}")
    cells = int(np.prod(space))
    seen = max(1, round(fraction * cells))
    mask = np.zeros((len(samples), cells), dtype=bool)
    for row, sample in zip(mask, samples, strict=True):
        row[np.random.default_rng((seed, sample)).choice(cells, size=seen, replace=False)] = True
    return torch.from_numpy(mask.reshape(len(samples), 1, *space, 1))
