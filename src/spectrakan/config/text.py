"""Settings as YAML text: the safe subset only, numbers read as people write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from spectrakan.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 1e-3 is a number (YAML 1.1 calls it text) and a repeated key is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping, refusing a key that stands in it twice."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        repeated = {str(key) for key in keys if keys.count(key) > 1}
        if repeated:
            raise ConfigError(f"line {node.start_mark.line + 1}: key '{min(repeated)}' is given twice")
        return super().construct_mapping(node, deep)


_NUMBER = re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))


def parse_yaml(text: str, *, source: str = "text") -> Any:
    """Read YAML text safely; a mistake raises `ConfigError` with its line.

    >>> parse_yaml("{rate: 1e-3, boundary: [wall, wall]}")
    {'rate': 0.001, 'boundary': ['wall', 'wall']}
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except ConfigError as problem:
        raise ConfigError(f"{source}: {problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as problem:
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise ConfigError(f"{source} is not valid YAML: {reason}") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"cannot read settings from '{path}': {problem}") from None
    content = parse_yaml(text, source=f"'{path}'")
    if not isinstance(content, dict):
        raise ConfigError(f"'{path}' must hold a mapping of settings, got {type(content).__name__}")
    return content


def to_yaml(mapping: dict[str, Any]) -> str:
    """Write plain settings as YAML, in the order given."""
    # Plain ASCII: the writer would put some line breaks raw, and they would come back as spaces.
    return yaml.safe_dump(mapping, sort_keys=False, allow_unicode=False, width=100)
