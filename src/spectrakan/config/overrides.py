"""Changes to settings from the command line: `a.b=c`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from spectrakan.config.text import parse_yaml
from spectrakan.errors import ConfigError


def apply_overrides(mapping: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of nested settings with each `a.b=value` put in; values are read as YAML.

    >>> apply_overrides({"model": {"width": 32}}, ["model.width=64", "training.learning_rate=1e-3"])
    {'model': {'width': 64}, 'training': {'learning_rate': 0.001}}
    """
    result = copy.deepcopy(mapping)
    for override in overrides:
        key, sign, text = override.partition("=")
        parts = key.strip().split(".")
        if not sign or not all(parts):
            raise ConfigError(f"expected key=value such as model.width=64, got '{override}'")
        place = result
        for part in parts[:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise ConfigError(f"'{key}': '{part}' is a value, not a group of settings")
        place[parts[-1]] = parse_yaml(text, source=f"override '{override}'")
    return result
