"""Typed settings to and from YAML: strict, with overrides; knows no setting of its own.

Settings are frozen, keyword-only pydantic dataclasses that refuse what they do not know. Text is the safe subset of
YAML, with numbers read as people write them.
"""

import copy
import dataclasses
import errno
import json
import math
import os
import re
import stat
import textwrap
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, dataclass_transform

import pydantic
import yaml
from pydantic import Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from spectrakan.errors import ConfigError, nearest

T = TypeVar("T")
Count = Annotated[int, Field(ge=1)]
"""A whole number of at least 1."""
MAX_MISTAKES = 10
"""Mistakes that one error message lists."""
TEXT_BYTES = 2**18
"""Longest YAML text that is parsed: far more than any settings need."""
MAX_GROUPS = 20
"""Deepest nesting of groups that an override reaches."""

_STRICT = pydantic.ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field, Field))
def settings(cls: type[T]) -> type[T]:
    """Make a class of annotated fields a settings class: frozen, keyword-only, strictly typed.

    A docstring under a field becomes its description. `build_settings` builds one from plain values and turns
    every mistake into a `ConfigError`.
    """
    return cast(type[T], pydantic_dataclass(cls, frozen=True, kw_only=True, config=_STRICT))


def build_settings(cls: type[T], config: Mapping[str, Any], *, where: str = "") -> T:
    """Build settings from plain values (numbers, strings, lists, mappings), as YAML or a caller gives them.

    An unknown key or a value of the wrong type raises `ConfigError` naming the key (below the prefix `where`)
    and, for an unknown one, the nearest that exists.
    """
    try:
        text = json.dumps(_plain(config))
    except RecursionError:
        raise ConfigError(f"{where or cls.__name__}: settings are nested too deeply") from None
    except (TypeError, ValueError) as problem:
        raise ConfigError(f"{where or cls.__name__}: settings must be plain values ({problem})") from problem
    try:
        return pydantic.TypeAdapter(cls).validate_json(text)
    except pydantic.ValidationError as problem:
        raise ConfigError(_explain(cls, problem, where)) from None


def as_mapping(value: Any) -> dict[str, Any]:
    """The settings as plain nested dictionaries that `build_settings` turns back into the same settings."""
    return cast(dict[str, Any], _plain(dataclasses.asdict(value)))


def describe(cls: type[Any]) -> dict[str, str]:
    """What each setting means, by name: the docstrings under the fields, inherited ones included."""
    meanings: dict[str, str] = {}
    for ancestor in reversed(cls.__mro__):
        for name, info in getattr(ancestor, "__pydantic_fields__", {}).items():
            if info.description or name not in meanings:
                meanings[name] = info.description or ""
    return meanings


def _plain(value: Any) -> Any:
    """Tuples become lists; a NaN or infinity, which JSON lacks, is refused."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value


def _explain(cls: type[Any], problem: pydantic.ValidationError, where: str) -> str:
    """One line for each mistake, of the first `MAX_MISTAKES`."""
    lines = []
    mistakes = problem.errors(include_url=False, include_context=False)
    for mistake in mistakes[:MAX_MISTAKES]:
        path = ".".join(str(part) for part in mistake["loc"] if part != cls.__name__)
        name = f"{where}.{path}" if where and path else where or path or cls.__name__
        if mistake["type"] == "unexpected_keyword_argument":
            known = _fields_at(cls, mistake["loc"][:-1])
            lines.append(f"unknown key '{name}'{nearest(str(mistake['loc'][-1]), known)}")
        elif mistake["type"] in {"missing", "missing_argument"}:
            lines.append(f"key '{name}' is missing")
        else:
            reason = mistake["msg"].removeprefix("Value error, ")
            lines.append(f"{name}: {reason}, got {textwrap.shorten(repr(mistake['input']), 200)}")
    if len(mistakes) > MAX_MISTAKES:
        lines.append(f"and {len(mistakes) - MAX_MISTAKES} more mistakes")
    return "\n".join(lines)


def _fields_at(cls: type[Any], path: tuple[int | str, ...]) -> list[str]:
    """Names of the settings that the nested settings class at `path` takes."""
    for part in path:
        cls = _group(cls, str(part)) or cls
    return list(getattr(cls, "__pydantic_fields__", {}))


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


class _Dumper(yaml.SafeDumper):
    """Writes every value out; the loader refuses references."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never refer to an earlier value."""
        return True


_NUMBER = re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$")
for _kind in (_Loader, _Dumper):  # the writer then quotes texts that the reader would take for numbers
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))


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
