"""The page of `spectrakan serve` in a real browser: touch, grids, keyboard, phone, links, a lost server."""

from __future__ import annotations

import json
import time

import pytest

pytestmark = pytest.mark.slow
POOL = "globalThis.spectrakan.scenes.pool"
STATE = f"(() => {{ const p = {POOL}; return {{step: p.step, cells: p.cells, model: Array.from(p.model)}}; }})()"


def until(page, expression: str, seconds: float = 60):
    """Wait until an expression is true; the page's own policy forbids polling by `eval`."""
    end = time.monotonic() + seconds
    while not (found := page.evaluate(expression)):
        assert time.monotonic() < end, f"{expression} did not become true"
        page.wait_for_timeout(50)
    return found


def paused(page):
    until(page, f"{POOL}.step > 3")
    page.click("#pool-play")
    until(page, f"!{POOL}.busy && !{POOL}.running")


def test_a_tap_changes_the_field_and_words(served, open_page):
    page = open_page(served)
    until(page, f"{POOL}.step > 10")
    box = page.locator("#pool-model").bounding_box()
    for k in range(3):
        before = page.evaluate(f"Math.max(...{POOL}.model)")
        page.mouse.click(box["x"] + box["width"] * (0.4 + 0.08 * k), box["y"] + box["height"] * 0.5)
        until(page, f"{POOL}.events.length === {k + 1}")
        assert k or page.evaluate(f"Math.max(...{POOL}.model)") > before + 0.1
        page.wait_for_timeout(400)
    until(page, "document.getElementById('pool-words').textContent.includes('away from the solver')")
    assert "ms a step" in page.inner_text("#pool-model-time")


def test_the_same_weights_run_on_every_grid(served, open_page):
    page = open_page(served)
    page.locator("#pool-cells").focus()
    for cells in (64, 128):
        page.keyboard.press("ArrowRight")
        until(page, f"{POOL}.cells === {cells} && {POOL}.since > 2")
        assert len(page.evaluate(f"Array.from({POOL}.model)")) == 3 * cells**2
        assert page.inner_text("#pool-cells-now") == f"{cells}²"


def test_a_link_gives_the_same_state(served, open_page):
    page = open_page(served)
    until(page, f"{POOL}.step > 3")
    page.evaluate(f"{POOL}.drop([0.3, 0.6], 1.1, 0.006)")
    until(page, f"{POOL}.events.length === 1 && {POOL}.step > {POOL}.events[0].step + 5")
    page.evaluate(f"{POOL}.drop([0.7, 0.2], 0.45, 0.005)")
    until(page, f"{POOL}.events.length === 2 && {POOL}.step > {POOL}.events[1].step + 4")
    page.click("#pool-play")
    until(page, f"!{POOL}.busy && !{POOL}.running")
    first = page.evaluate(STATE)
    page.reload()
    page.wait_for_selector("body[data-ready=pool]", timeout=120_000)
    second = page.evaluate(STATE)
    assert second["step"] == first["step"]
    assert max(abs(a - b) for a, b in zip(first["model"], second["model"], strict=True)) < 1e-5


def test_leaving_the_training_range_is_said(served, open_page):
    page = open_page(served)
    until(page, f"{POOL}.step > 3")
    page.click("#pool-break")
    until(page, f"{POOL}.left && {POOL}.found.error > 0.02")  # failure shows
    until(page, "!document.getElementById('pool-verdict').hidden")
    verdict = page.inner_text("#pool-verdict")
    assert "training range" in verdict.lower() or "frozen" in verdict
    assert "outside the range" in page.inner_text("#pool-words")
    page.click("#pool-calm")
    until(page, "document.getElementById('pool-verdict').hidden")


def test_everything_is_reached_by_keyboard(served, open_page):
    page = open_page(served)
    until(page, f"{POOL}.step > 3")
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.dataset.scene || ''"))
    wanted = {"theme", "pool-solver", "pool-model", "pool-play", "pool-step", "pool-cells", "pool-glow", "pool-break"}
    assert wanted | {"pool", "rock", "gas", "runs"} <= set(reached)
    page.focus("#pool-model")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    event = until(page, f"{POOL}.events[0]")
    assert (event["x"], event["y"]) == pytest.approx((0.42, 0.54), abs=1e-3)
    page.focus("[data-scene=rock]")
    page.keyboard.press("Enter")
    page.wait_for_selector("body[data-ready=rock]")
    page.focus("#rock-paint")
    page.keyboard.press("Enter")
    until(page, "globalThis.spectrakan.scenes.rock.strokes.length === 1")
    page.evaluate("location.hash = '#gas'")
    page.wait_for_selector("body[data-ready=gas]")
    page.focus("#gas-draw")
    page.keyboard.press("ArrowUp")
    until(page, "globalThis.spectrakan.scenes.gas.found")


def test_pressure_follows_the_brush(served, open_page):
    page = open_page(served + "#rock", wait="rock")
    rock = "globalThis.spectrakan.scenes.rock"
    first = until(page, f"{rock}.found && Array.from({rock}.found.model)")
    box = page.locator("#rock-paint").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2, steps=6)
    page.mouse.up()
    until(page, f"{rock}.strokes.length > 2 && !{rock}.busy")
    second = page.evaluate(f"Array.from({rock}.found.model)")
    assert max(abs(a - b) for a, b in zip(first, second, strict=True)) > 0.01
    assert page.evaluate(f"{rock}.error") < 0.5
    page.reload()
    page.wait_for_selector("body[data-ready=rock]")
    again = until(page, f"{rock}.found && !{rock}.busy && Array.from({rock}.found.model)")
    assert max(abs(a - b) for a, b in zip(again, second, strict=True)) < 1e-5


def test_the_rock_has_three_grids_for_the_same_weights(served, open_page):
    page = open_page(served + "#rock", wait="rock")
    rock = "globalThis.spectrakan.scenes.rock"
    page.focus("#rock-cells")
    for key, cells in (("ArrowRight", 128), ("ArrowLeft", 64), ("ArrowLeft", 32)):
        page.keyboard.press(key)
        until(page, f"!{rock}.busy && {rock}.found?.model.length === {cells**2}")
        assert page.evaluate(f"{rock}.error") < 0.2, cells


def test_a_drawn_curve_is_solved_and_comes_back_with_the_link(served, open_page):
    page = open_page(served + "#gas", wait="gas")
    gas = "globalThis.spectrakan.scenes.gas"
    curves = f"[...{gas}.curves.map((curve) => Array.from(curve)), Array.from({gas}.found.model)]"
    before = until(page, f"{gas}.found && !{gas}.busy && {curves}")
    box = page.locator("#gas-draw").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.7)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.2, steps=5)
    page.mouse.up()
    drawn = until(page, f"!{gas}.busy && !{gas}.again && {curves}")
    low, high = drawn[0][45], drawn[0][80]
    assert high > low + 2, "density follows the pointer"
    assert drawn[1:3] == before[1:3]
    assert drawn[3] != before[3], "and so does what is predicted"
    page.focus("#gas-time")
    page.keyboard.press("End")
    assert "At t = 1.00 the predicted density" in page.inner_text("#gas-words")
    page.reload()
    page.wait_for_selector("body[data-ready=gas]")
    again = until(page, f"{gas}.found && !{gas}.busy && {curves}")
    assert again[:3] == drawn[:3]
    assert max(abs(a - b) for a, b in zip(again[3], drawn[3], strict=True)) < 1e-4
    assert page.evaluate(f"{gas}.frame") == 20


def test_runs_are_compared_and_looked_into(served, open_page):
    page = open_page(served + "#runs", wait="runs")
    until(page, "document.querySelectorAll('#runs-maps canvas').length >= 6")
    words = page.inner_text("#runs-words")
    assert "spectrakan" in words
    assert "fno" in words
    assert "relative_l2" in page.inner_text("#runs-scores")
    page.focus("#runs-time")
    page.keyboard.press("ArrowRight")
    until(page, "location.hash.includes('frame=1')")
    page.click("#runs-kan summary")
    until(page, "document.querySelectorAll('.curves canvas').length > 10")
    page.click("#runs-gates summary")
    page.click("#runs-certificate summary")
    assert "spectrakan certify" in page.inner_text("#runs-certificate")
    until(page, "document.getElementById('runs-maps').textContent.includes('Attention of the token')")
    page.focus("#runs-sample")
    page.keyboard.press("ArrowRight")
    until(page, "location.hash.includes('sample=1')")
    page.select_option("#runs-name", "fno")
    until(page, "location.hash.includes('run=fno')")
    until(page, "document.querySelector('.curves').textContent.includes('has no KAN')")
    until(page, "!document.getElementById('runs-maps').textContent.includes('Attention of the token')")
    page.select_option("#runs-other", "spectrakan")
    until(page, "document.getElementById('runs-words').textContent.includes('spectrakan')")
    words = page.inner_text("#runs-words")
    page.reload()
    page.wait_for_selector("body[data-ready=runs]")
    until(page, f"document.getElementById('runs-words').textContent.trim() === {json.dumps(words)}")


def test_it_fits_a_phone(served, open_page):
    page = open_page(served, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    for scene in ("pool", "rock", "gas", "runs"):
        page.evaluate(f"location.hash = '#{scene}'")
        page.wait_for_selector(f"body[data-ready={scene}]")
        if scene == "runs":
            page.evaluate("document.querySelector('#runs-name option').textContent = 'a-long-name-of-a-run (fno)'")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, scene
    page.evaluate("location.hash = '#pool'")
    page.wait_for_selector("body[data-ready=pool]")
    box = page.locator("#pool-model").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    until(page, f"{POOL}.events.length === 1")


def test_colours_and_motion_follow_the_system(served, open_page):
    page = open_page(served, color_scheme="dark", reduced_motion="reduce")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.wait_for_timeout(600)
    assert page.evaluate(f"{POOL}.step") == 0, "nothing moves by itself"
    page.click("#pool-step")
    until(page, f"{POOL}.step === 1")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_a_lost_server_is_said_and_forgotten_when_it_is_back(served, open_page):
    page = open_page(served)
    until(page, f"{POOL}.step > 2")
    page.context.route("**/api/**", lambda route: route.abort())
    page.context.route("**/healthz", lambda route: route.abort())
    until(page, "!document.getElementById('notice').hidden")
    assert "does not answer" in page.inner_text("#notice")
    page.context.unroute("**/api/**")
    page.context.unroute("**/healthz")
    until(page, "document.getElementById('notice').hidden")
    at = page.evaluate(f"{POOL}.step")
    until(page, f"{POOL}.step > {at} + 2")
    answer = page.goto(served + "nothing")
    assert answer.status == 404
    assert "To the pool" in page.inner_text("body")
