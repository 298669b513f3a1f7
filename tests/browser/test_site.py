"""Every page of the documentation site in a browser at two widths: it fits, pictures load, no other host is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SITE = Path(__file__).resolve().parents[2] / "build" / "site"
BROKEN = "[...document.images].filter((image) => image.complete && !image.naturalWidth).map((image) => image.src)"


@pytest.mark.parametrize("width", [1280, 360])
def test_pages_fit_and_are_complete(site: str, open_page, width: int):
    page = open_page(site, wait=None, viewport={"width": width, "height": 800})
    names = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if path.name != "404.html")
    assert len(names) > 25
    for name in names:
        answer = page.goto(site + name, wait_until="load")
        assert answer.status == 200, name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert not page.evaluate(BROKEN), name
        assert page.evaluate("document.querySelector('article h1').textContent.length") > 3, name
