"""Processes of one thread each, a few at a time; whoever stops the pool stops them all, gently."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

POLL_SECONDS = 0.1

Ended = Callable[[int, int, float], None]
"""Told of each process that ended: its place among the requests, its exit code, its seconds."""


def run_side_by_side(module: str, requests: Sequence[str], jobs: int, ended: Ended) -> None:
    """Start `python -m module REQUEST` for each request, at most `jobs` at a time, in their order."""
    waiting = deque(enumerate(requests))
    running: dict[subprocess.Popen[bytes], tuple[int, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                place, text = waiting.popleft()
                running[_start(module, text)] = (place, time.monotonic())
            finished = [process for process in running if process.poll() is not None]
            for process in finished:
                place, begin = running.pop(process)
                ended(place, process.returncode, time.monotonic() - begin)
            if not finished:
                time.sleep(POLL_SECONDS)
    finally:
        # Whatever ended the loop, the processes take a checkpoint and go; the next campaign goes on from there.
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def _start(module: str, text: str) -> subprocess.Popen[bytes]:
    """A process of one thread, in a session of its own, so that Ctrl-C reaches the campaign alone."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-m", module, text]
    return subprocess.Popen(command, env=os.environ | threads, start_new_session=True)
