"""What an HTML page is made of, with its tags checked."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Outline(HTMLParser):
    """Checks that tags nest, and keeps what a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data if self.open and self.open[-1] not in {"style", "script"} else ""

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    found.close()
    assert found.open == []
    return found
