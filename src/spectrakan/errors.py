"""What can go wrong, by kind; every message says what was expected, what came and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec


class SpectraKANError(Exception):
    """Root of all errors that this package raises on purpose."""


class ShapeError(SpectraKANError):
    """An array has the wrong rank, size or number of channels."""


class ConfigError(SpectraKANError):
    """A setting is unknown, malformed or contradicts another."""


class DataFormatError(SpectraKANError):
    """A file is missing, damaged, of a foreign format or not what its reader was promised."""


class RunError(SpectraKANError):
    """A run cannot begin or go on: its folder is in use, the disk or the memory is full, or training diverged."""


class UnfittedWarning(UserWarning):
    """A model is used before it was fitted to data."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Say which known word was probably meant, as the tail of an error message.

    >>> nearest("widht", ["width", "num_modes"])
    "; did you mean 'width'? Known: num_modes, width"
    """
    names = sorted(known)
    close = get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    return f"{hint} Known: {', '.join(names)}"


def require_package(package: str, extra: str, what: str) -> None:
    """Refuse what needs an optional package that is not installed; the error names the extra that brings it."""
    try:
        installed = find_spec(package) is not None
    except ValueError:  # a module that was put aside has no description
        installed = False
    if not installed:
        raise ConfigError(f"{what} needs {package}: pip install 'spectrakan[{extra}]'")
