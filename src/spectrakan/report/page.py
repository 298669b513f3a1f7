"""One HTML page that needs nothing else: style, script, tables and pictures are inside the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from spectrakan.errors import ConfigError
from spectrakan.report.elements import Element, as_html


@dataclass(frozen=True)
class Section:
    """A part of a page under its own title; a `short` one stands in the navigation."""

    title: str
    elements: Sequence[Element]
    short: str = ""
    level: int = 2
    """2 for a chapter, 3 for a part of one; only chapters are in the navigation."""

    @property
    def anchor(self) -> str:
        """What a link to the section ends with.

        >>> Section("Main table: RMSE", []).anchor
        'main-table-rmse'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def page(title: str, lead: Sequence[Element], sections: Sequence[Section], footer: str = "") -> str:
    """The page as text: title, `lead`, navigation, sections. All words are escaped.

    >>> "a &lt;b&gt;" in page("a <b>", [], [])
    True
    """
    anchors = [section.anchor for section in sections]
    if twice := {anchor for anchor in anchors if anchors.count(anchor) > 1}:
        raise ConfigError(f"sections need titles of their own, these come twice: {', '.join(sorted(twice))}")
    chapters = [section for section in sections if section.level == 2]
    links = "".join(
        f'<li><a href="#{section.anchor}">{escape(section.short or section.title)}</a></li>' for section in chapters
    )
    navigation = f'<nav aria-label="Sections"><ul>{links}</ul></nav>' if len(chapters) > 1 else ""
    body = (
        f'<a class="skip" href="#content">Skip to the content</a>'
        f"<header><h1>{escape(title)}</h1>{_html(lead)}</header>{navigation}"
        f'<main id="content">{"".join(_section(section) for section in sections)}</main>'
        f"{f'<footer><p>{escape(footer)}</p></footer>' if footer else ''}"
        f"<script>{_resource('page.js')}</script>"
    )
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_resource('page.css')}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _section(section: Section) -> str:
    heading = f"<h{section.level}>{escape(section.title)}</h{section.level}>"
    return f'<section id="{section.anchor}">{heading}{_html(section.elements)}</section>'


def _html(elements: Sequence[Element]) -> str:
    return "".join(as_html(element) for element in elements)


def _resource(name: str) -> str:
    return files("spectrakan.report").joinpath(name).read_text(encoding="utf-8")
