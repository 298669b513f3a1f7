"""Typed settings to and from YAML: strict, with overrides; knows no setting of its own."""

from spectrakan.config.settings import Count, as_mapping, build_settings, describe, settings
from spectrakan.config.text import (
    apply_overrides,
    as_overrides,
    parse_yaml,
    read_regular,
    read_yaml,
    to_yaml,
    to_yaml_with_help,
)

__all__ = [
    "Count",
    "apply_overrides",
    "as_mapping",
    "as_overrides",
    "build_settings",
    "describe",
    "parse_yaml",
    "read_regular",
    "read_yaml",
    "settings",
    "to_yaml",
    "to_yaml_with_help",
]
