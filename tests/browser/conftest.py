"""Chromium from the system's packages, driven by Playwright; any request to another host fails the test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.bare import BareBrowser

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"
CHROMIUM = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)
SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader-webgl", "--enable-unsafe-swiftshader"]
"""As Chromium does by itself on a machine without a GPU: WebGL and pages are drawn by the processor."""


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium; `make browser` installs it where this user may")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=SOFTWARE)
        yield made
        made.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory) -> Iterator[str]:
    """The address of `spectrakan serve`, as a user starts it, with two small runs."""
    folder = tmp_path_factory.mktemp("runs")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    small = ["data.num_samples=8", "data.test_samples=2", "training.epochs=1", "model.width=8", "--budget", "smoke"]
    program = [sys.executable, "-m", "spectrakan"]
    runs = []
    for model in ("spectrakan", "fno"):
        runs.append(str(folder / model))
        asked = [*program, "train", "droplet2d", "--model", model, "--output", runs[-1], *small]
        subprocess.run(asked, env=environment, check=True, capture_output=True)
    serving = subprocess.Popen(
        [*program, "serve", *runs, "--no-browser", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert serving.stdout is not None
    found = re.search(r"http://\S+", serving.stdout.readline())
    assert found, "the command tells its address"
    yield found.group(0)
    serving.terminate()
    serving.communicate(timeout=30)


@pytest.fixture
def bare(served, tmp_path) -> Iterator[BareBrowser]:
    """The served page in a browser that records nothing, for what is timed."""
    if CHROMIUM is None:
        pytest.skip("no chromium; `make browser` installs it where this user may")
    opened = BareBrowser(CHROMIUM, SOFTWARE, served, str(tmp_path / "profile"))
    opened.until("document.body?.dataset.ready === 'pool'", 120)
    yield opened
    opened.close()


class Quiet(SimpleHTTPRequestHandler):
    """Files, without a line for each."""

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def static_page(tmp_path_factory) -> Iterator[str]:
    """The address of a plain file server with the static page."""
    if shutil.which("npm") is None:
        pytest.skip("no npm, from which the static page takes onnxruntime-web")
    folder = tmp_path_factory.mktemp("page") / "page"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(ROOT / "tools" / "make_page.py"), str(folder)], env=environment, check=True)
    yield from files_of(folder)


def files_of(folder: Path) -> Iterator[str]:
    """The address of a plain file server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the documentation site."""
    if not (SITE / "index.html").is_file():
        pytest.skip("no site; `make site` builds it")
    yield from files_of(SITE)


@pytest.fixture
def open_page(browser):
    """A function that opens an address; at the end, no foreign request and no error may have happened."""
    opened, faults = [], []

    def opener(address: str, wait: str | None = "pool", **settings):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        page = context.new_page()
        home = urlsplit(address).netloc

        def checked(request):
            asked = urlsplit(request.url)
            if asked.scheme in ("http", "https", "ws", "wss") and asked.netloc != home:
                faults.append(f"a request to {request.url}")

        # Watched, not intercepted: a round trip through the test for every state would be part of what is timed.
        context.on("request", checked)
        page.on("pageerror", lambda problem: faults.append(str(problem)))
        page.goto(address)
        if wait is not None:
            page.wait_for_selector(f"body[data-ready={wait}]", timeout=120_000)
        opened.append(context)
        return page

    yield opener
    for context in opened:
        context.close()
    assert not faults, faults
