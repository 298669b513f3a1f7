"""Motions of numbers, for tests of rules."""

from __future__ import annotations

from torch import Tensor

from spectrakan.theory.rules import Motion


def around(centre: Tensor, reach: Tensor, rate: Tensor) -> Motion:
    """Moved by at most `reach`."""
    return Motion(centre, centre - reach, centre + reach, rate)
