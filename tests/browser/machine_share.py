"""How much of the machine other work leaves to a test that measures time."""

from __future__ import annotations

import os
import time
from pathlib import Path

CORES = 2
"""Cores on which the page has to keep its promises."""


class Share:
    """The share of two cores that other work on the machine leaves to this test, its server and its browser.

        share = min(1, (cores - (all busy time - own busy time) / clock) / 2)

    A time on the clock times this share is the time that the same work takes where nothing else runs: 1 on a quiet
    machine. Only Linux tells these times; elsewhere the share is 1.
    """

    def __init__(self) -> None:
        self.before = self.read()

    @staticmethod
    def read() -> tuple[float, float, float]:
        """Seconds of the clock, of all busy processors, and of this process and all that descend from it."""
        if not Path("/proc/stat").is_file():
            return time.monotonic(), 0.0, 0.0
        tick = os.sysconf("SC_CLK_TCK")
        user, nice, system, _idle, _wait, *rest = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
        parents, spent = {}, {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            number = int(path.parent.name)
            parents[number], spent[number] = int(fields[1]), sum(map(int, fields[11:15]))
        own, found = 0, {os.getpid()}
        while found:
            own += sum(spent.pop(number, 0) for number in found)
            found = {number for number, parent in parents.items() if parent in found}
        return time.monotonic(), (user + nice + system + sum(rest)) / tick, own / tick

    def now(self) -> float:
        """The share since the last call."""
        before, self.before = self.before, self.read()
        clock, busy, own = (late - early for late, early in zip(self.before, before, strict=True))
        others = max(0.0, busy - own) / max(clock, 1e-3)
        return min(1.0, max(0.02, ((os.cpu_count() or CORES) - others) / CORES))
