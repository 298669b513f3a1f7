"""Typed settings to and from YAML: strict, with overrides; knows no setting of its own."""

from spectrakan.config.overrides import apply_overrides
from spectrakan.config.settings import as_mapping, build_settings, describe, settings
from spectrakan.config.text import parse_yaml, read_yaml, to_yaml

__all__ = [
    "apply_overrides",
    "as_mapping",
    "build_settings",
    "describe",
    "parse_yaml",
    "read_yaml",
    "settings",
    "to_yaml",
]
