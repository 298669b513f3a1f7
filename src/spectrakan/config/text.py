"""Settings as YAML text and as `a.b=c`: the safe subset of YAML only, numbers read as people write them."""

from __future__ import annotations

import copy
import errno
import os
import re
import stat
import textwrap
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from spectrakan.config.settings import describe
from spectrakan.errors import ConfigError

TEXT_BYTES = 2**18
"""Longest YAML text that is parsed: far more than any settings need."""
MAX_GROUPS = 20
"""Deepest nesting of groups that an override reaches."""


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 1e-3 is a number (YAML 1.1 calls it text); repeated keys and references are errors."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse references: a few lines of them can stand for billions of values."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise ConfigError(f"line {mark.line + 1}: references (*name) are not supported; write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping, refusing a key that occurs twice."""
        seen = set()
        for item, _ in node.value:
            key = self.construct_object(item, deep=True)
            if key in seen:
                raise ConfigError(f"line {item.start_mark.line + 1}: key '{key}' is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


_NUMBER = re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))


class _Dumper(yaml.SafeDumper):
    """Writes every value out; the loader refuses references."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never refer to an earlier value."""
        return True


def parse_yaml(text: str, *, source: str = "text") -> Any:
    """Read YAML text safely; a mistake raises `ConfigError` with its line.

    >>> parse_yaml("{rate: 1e-3, boundary: [wall, wall]}")
    {'rate': 0.001, 'boundary': ['wall', 'wall']}
    """
    if len(text) > TEXT_BYTES:
        raise ConfigError(f"{source} has {len(text)} characters, settings have at most {TEXT_BYTES}")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except ConfigError as problem:
        raise ConfigError(f"{source}: {problem}") from None
    except RecursionError:
        raise ConfigError(f"{source} is not valid YAML: it is nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError) as problem:
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise ConfigError(f"{source} is not valid YAML: {reason}") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping."""
    try:
        text = read_regular(path, 4 * TEXT_BYTES).decode()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise ConfigError(f"cannot read settings from '{path}': {reason}") from None
    content = parse_yaml(text, source=f"'{path}'")
    if not isinstance(content, dict):
        raise ConfigError(f"'{path}' must hold a mapping of settings, got {type(content).__name__}")
    return content


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; a device, fifo or larger file raises OSError unread."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    # A fifo that has taken the file's name meanwhile must not block.
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if found.st_size > limit:
            raise OSError(errno.EFBIG, f"it has {found.st_size} bytes, at most {limit} are expected", str(path))
        return file.read(found.st_size)


def to_yaml(mapping: Mapping[str, Any]) -> str:
    """Write plain settings as YAML, in the order given."""
    # Plain ASCII: the writer would put some line breaks raw, and they would come back as spaces.
    return yaml.dump(mapping, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=100)


def to_yaml_with_help(
    cls: type[Any], mapping: Mapping[str, Any], groups: Mapping[str, Mapping[str, str]] | None = None
) -> str:
    """As `to_yaml`, with the docstring of each setting of `cls` in a comment above it, in nested groups too.

    `groups` gives the meanings of settings in groups that are plain mappings, by the name of the group.
    """
    return "\n".join(_explained(cls, describe(cls), mapping, groups or {})) + "\n"


def _explained(
    cls: type[Any] | None,
    meanings: Mapping[str, str],
    mapping: Mapping[str, Any],
    groups: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    for key, value in mapping.items():
        yield from (f"# {line}" for line in textwrap.wrap(meanings.get(key, ""), 96))
        inner = _group(cls, key)
        known = groups.get(key) or (describe(inner) if inner else {})
        if isinstance(value, Mapping) and value and known:
            yield f"{key}:"
            yield from (f"  {line}" for line in _explained(inner, known, value, {}))
        else:
            yield from to_yaml({key: value}).splitlines()


def _group(cls: type[Any] | None, key: str) -> type[Any] | None:
    """The settings class of a nested group, also where it may be absent (`Group | None`)."""
    known = getattr(cls, "__pydantic_fields__", {}).get(key)
    kinds = [] if known is None else [known.annotation, *typing.get_args(known.annotation)]
    return next((kind for kind in kinds if hasattr(kind, "__pydantic_fields__")), None)


def apply_overrides(mapping: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of nested settings with each `a.b=value` put in; values are read as YAML.

    >>> apply_overrides({"model": {"width": 32}}, ["model.width=64", "training.learning_rate=1e-3"])
    {'model': {'width': 64}, 'training': {'learning_rate': 0.001}}
    """
    result = copy.deepcopy(mapping)
    for override in overrides:
        key, sign, text = override.partition("=")
        parts = key.strip().split(".")
        if not sign or not all(parts) or len(parts) > MAX_GROUPS:
            raise ConfigError(f"expected key=value such as model.width=64, got '{override[:200]}'")
        group = result
        for part in parts[:-1]:
            group = group.setdefault(part, {})
            if not isinstance(group, dict):
                raise ConfigError(f"'{key}': '{part}' is a value, not a group of settings")
        group[parts[-1]] = parse_yaml(text, source=f"override '{override[:200]}'")
    return result


def as_overrides(values: Mapping[str, Any]) -> list[str]:
    """The texts that `apply_overrides` reads as these values, which may be any text; those of None are left out."""
    return [f"{key}={to_yaml({'v': value})[3:].strip()}" for key, value in values.items() if value is not None]
