"""Take the pictures of the page for docs/pictures, in Chromium, from the shipped models.

    python tools/make_pictures.py [FOLDER]

Take them on a quiet machine: the pictures show measured times.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader-webgl", "--enable-unsafe-swiftshader"]
DROPS = "#pool?cells=32&step=26&paused=1&do=2d700.350.110.60~19d380.620.110.60"
WIDE, PHONE = {"width": 1280, "height": 600}, {"width": 360, "height": 740}
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "pool": (DROPS, {"viewport": WIDE}),
    "dark": (f"{DROPS}&glow=1", {"viewport": WIDE, "color_scheme": "dark"}),
    "rock": ("#rock", {"viewport": WIDE}),
    "gas": ("#gas?frame=12", {"viewport": WIDE}),
    "phone": (DROPS, {"viewport": PHONE, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}),
}
"""Address and browser settings of each picture."""


def paint(page: Any) -> None:
    """Strokes of tight rock across the field."""
    box = page.locator("#rock-paint").bounding_box()
    for first, last in (((0.15, 0.3), (0.8, 0.4)), ((0.6, 0.9), (0.35, 0.6))):
        page.mouse.move(box["x"] + first[0] * box["width"], box["y"] + first[1] * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + last[0] * box["width"], box["y"] + last[1] * box["height"], steps=8)
        page.mouse.up()
        page.wait_for_timeout(500)


def main(folder: Path) -> None:
    """Start a server, take every picture, stop it."""
    asked = [sys.executable, "-m", "spectrakan", "serve", "--no-browser", "--port", "0"]
    serving = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", serving.stdout.readline())[0]  # type: ignore[union-attr,index]
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            for name, (place, settings) in PICTURES.items():
                page = browser.new_context(**settings).new_page()
                page.goto(address + place)
                scene = re.match(r"#(\w+)", place)[1]  # type: ignore[index]
                page.wait_for_selector(f"body[data-ready={scene}]", timeout=120_000)
                if name == "rock":
                    paint(page)
                waiting = f"(({{busy, found}}) => busy || !found)(globalThis.spectrakan.scenes.{scene})"
                while page.evaluate(waiting):
                    page.wait_for_timeout(100)
                if name != "phone":  # the whole page; a resize while the picture is taken would coarsen the water
                    tall = page.evaluate("document.documentElement.scrollHeight")
                    page.set_viewport_size({"width": WIDE["width"], "height": tall})
                page.wait_for_timeout(2500)
                page.evaluate("scrollTo(0, 0)")
                page.screenshot(path=folder / f"{name}.png")
                page.context.close()
            browser.close()
    finally:
        serving.terminate()
        serving.wait(30)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures"))
