"""Text of documents and docstrings as Python-Markdown needs it, for mkdocs (`hooks`) and mkdocstrings (`extensions`).

Readers of the source need no blank line between a paragraph and a list or table, and see `>>>` as an example;
Python-Markdown wants the line, takes `>>>` for a quotation, and some indices of formulas for emphasis.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

STARTS = re.compile(r"(\s*)([-*] |\d+\. |\|.*\|$)")


def spaced(text: str) -> str:
    """A blank line before every list and table that follows other text, outside of code."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        before = lines[-1] if lines else ""
        begins = STARTS.match(line) is not None and not STARTS.match(before) and not before.startswith("  ")
        if not inside and before.strip() and (begins or (fence and not before.startswith(" "))):
            lines.append("")
        lines.append(line if inside or line.startswith("    ") else indexed(line))
        inside = inside != fence
        if fence and not inside:
            lines.append("")
    return "\n".join(lines)


def indexed(line: str) -> str:
    """The underscore of an index after a bracket or bar, outside of code: no emphasis begins there."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if part.startswith("`") else re.sub(r"(?<=[|)\]}'])_", r"\_", part) for part in parts)


def fenced(text: str) -> str:
    """Examples that begin with `>>>` as blocks of code, up to the next blank line."""
    return re.sub(r"(^>>> (?:.+\n?)+)", r"\n```python\n\1\n```\n", text, flags=re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return spaced(markdown)


class Docstrings(Extension):
    """Called by mkdocstrings for every object."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Prepare the docstring."""
        if obj.docstring is not None:
            obj.docstring.value = spaced(fenced(obj.docstring.value))
