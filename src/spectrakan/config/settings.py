"""Settings are frozen, keyword-only pydantic dataclasses that refuse what they do not know."""

from __future__ import annotations

import dataclasses
import json
import math
import textwrap
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, cast, dataclass_transform

import pydantic
from pydantic import Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from spectrakan.errors import ConfigError, nearest

T = TypeVar("T")
Count = Annotated[int, Field(ge=1)]
"""A whole number of at least 1."""
MAX_MISTAKES = 10
"""Mistakes that one error message lists."""

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
        fields = getattr(cls, "__pydantic_fields__", {})
        if part not in fields:
            continue
        cls = fields[part].annotation
    return list(getattr(cls, "__pydantic_fields__", {}))
