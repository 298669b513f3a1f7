"""Room on a disk, looked at before something long fills it."""

from __future__ import annotations

import shutil
from pathlib import Path

from spectrakan.errors import ConfigError


def require_space(folder: Path, needed: int, what: str) -> None:
    """Refuse to begin when the disk of `folder` (or of its nearest parent that exists) lacks `needed` bytes."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed > free:
        raise ConfigError(
            f"{what} needs {needed / 1e9:.3g} GB, '{folder}' has {free / 1e9:.3g} GB free; "
            "choose another folder or make room"
        )
