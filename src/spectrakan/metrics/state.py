"""Running sums as plain JSON values and back, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from spectrakan.metrics.scores import Totals


def pack_totals(totals: Totals) -> dict[str, Any]:
    """Tensors as shape and list of numbers; what JSON has no number for (NaN, infinity) becomes text.

    >>> pack_totals({"rmse": torch.tensor([0.5, math.nan])})
    {'rmse': {'shape': [2], 'values': [0.5, 'nan']}}
    """
    return {
        name: {
            "shape": list(total.shape),
            "values": [x if math.isfinite(x) else str(x) for x in total.flatten().tolist()],
        }
        for name, total in totals.items()
    }


def unpack_totals(packed: Mapping[str, Any]) -> Totals:
    """The inverse of `pack_totals`."""
    return {
        name: torch.tensor([float(x) for x in entry["values"]], dtype=torch.float64).reshape(entry["shape"])
        for name, entry in packed.items()
    }
