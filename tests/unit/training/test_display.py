"""What a terminal shows of long work: a bar that comes with the first piece, tells the time left, and goes."""

from __future__ import annotations

import re
import sys
import time

import pytest
from rich.progress import Progress

from spectrakan.training.display import _moving_bars, display


def test_a_bar_comes_with_the_first_piece_of_work_and_goes_with_the_last():
    bars = Progress(disable=True)
    draw = _moving_bars(bars)
    assert bars.tasks == [], "nothing of unknown size is on the screen"
    draw("solving darcy2d", 1, 4, "")
    assert [(task.completed, task.total, task.visible) for task in bars.tasks] == [(1, 4, True)]
    draw("training", 1, 10, "epoch 1")
    draw("solving darcy2d", 4, 4, "")
    assert [task.visible for task in bars.tasks] == [False, True]


def test_the_time_left_is_shown_on_a_narrow_screen(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    text = "epoch 17  loss 0.1234  validation 0.1234  rate 1.0e-02  1234 samples/s"
    with display(True) as shown:
        for step in (1, 2, 3):
            shown.draw("training", step, 4, text)
            time.sleep(0.15)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]", capfd.readouterr().err)]
    last = [line for line in lines if line.startswith("training") and "3/4" in line][-1]
    assert re.search(r"3/4 +(--:--|\d+:\d\d)", last)
    assert "epoch 17" in last


def test_a_path_in_brackets_is_shown_whole(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with display(True) as shown:
        shown.say("run folder: runs/[heat]/a")
    assert "run folder: runs/[heat]/a" in capfd.readouterr().err
