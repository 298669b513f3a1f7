"""Numbers as JSON knows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor


def as_json(**entries: Any) -> dict[str, Any]:
    """A document of plain values, ready for `json.dumps(..., allow_nan=False)`."""
    return {name: plain(value) for name, value in entries.items()}


def plain(value: Any) -> Any:
    """Nested tensors, arrays and numbers as lists, floats and None; what is not finite has no number in JSON.

    >>> plain({"errors": np.array([0.5, np.inf]), "count": 2})
    {'errors': [0.5, None], 'count': 2}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
