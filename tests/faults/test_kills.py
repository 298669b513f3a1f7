"""kill -9 at random instants: what is on disk always goes on to the bits of an undisturbed run."""

from __future__ import annotations

import random
import signal
import time

import pytest
from run_process import TINY, Launcher, contents

from spectrakan.checkpoint import load_checkpoint
from spectrakan.errors import DataFormatError

RUN = ("train", "darcy2d", *TINY, "training.epochs=8")


def kill_often(folder, kills: int) -> dict[str, int]:
    """Kill runs at random instants of their life, each followed by a resume; how often it hit what.

    On a machine that has become slower most instants lie before the first step: then it kills up to twice as often,
    until a quarter of `kills` came after it.
    """
    launcher = Launcher(folder)
    try:
        return _kill_often(launcher, folder, kills)
    finally:
        launcher.close()


def _kill_often(launcher, folder, kills: int) -> dict[str, int]:
    draw = random.Random(kills)
    begin = time.monotonic()
    assert launcher.run(*RUN, "--output", "reference")[0] == 0
    whole = time.monotonic() - begin
    reference = contents(folder / "reference")
    seen = {"killed": 0, "finished": 0, "steps_seen": 0, "in_exchange": 0}
    number, arguments = 0, [*RUN, "--output", "run0"]

    def kills_on() -> bool:
        return seen["killed"] < kills or (seen["steps_seen"] < kills // 4 and seen["killed"] < 2 * kills)

    while kills_on() or arguments[1] == "--resume":
        place = folder / f"run{number}"
        process, begin = launcher.start(*arguments), time.monotonic()
        if kills_on():
            if process.ended_within(draw.uniform(0.0, whole)):
                # The machine is faster than it was: keep the instants within a run's life.
                whole = min(whole, time.monotonic() - begin)
            process.signal(signal.SIGKILL)
        code = process.wait()
        if code == 0:
            assert contents(place) == reference
            seen["finished"] += 1
            number += 1
            arguments = [*RUN, "--output", f"run{number}"]
            continue
        assert code == -signal.SIGKILL, process.errors
        seen["killed"] += 1
        if not (place / "config.yaml").is_file():
            arguments = [*RUN, "--output", f"run{number}"]
            continue
        arguments = ["train", "--resume", f"run{number}"]
        last = place / "checkpoints" / "last"
        seen["in_exchange"] += not last.is_dir() and (place / "checkpoints" / ".last.previous").is_dir()
        try:
            seen["steps_seen"] += load_checkpoint(last).position["step"] > 0
        except DataFormatError:
            # Before the first checkpoint there is nothing, and never something that is not whole.
            assert not last.exists()
    return seen


def test_twenty_kills_at_random_instants(tmp_path):
    seen = kill_often(tmp_path, 20)
    assert seen["killed"] >= 20
    assert seen["finished"] >= 1
    assert seen["steps_seen"] >= 5


@pytest.mark.slow
def test_two_hundred_kills_at_random_instants(tmp_path, keep_outcome):
    seen = kill_often(tmp_path, 200)
    keep_outcome(seen)
    assert seen["killed"] >= 200
    assert seen["finished"] >= 3
    assert seen["steps_seen"] >= 100
