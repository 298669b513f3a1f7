"""`spectrakan demo`: see the model at work."""

from __future__ import annotations


def demo() -> None:
    """Show one SpectraKAN, with the same weights, at three resolutions."""
