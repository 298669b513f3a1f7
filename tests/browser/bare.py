"""Chromium driven by its own protocol through a pipe, with nothing recorded that a page asks or is answered.

A test driver has the browser report every request with its body; with 10 states of 200 kB a second that doubles what
the page costs. Here scripts are evaluated and the pointer is moved, nothing else.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import time
from typing import Any


class BareBrowser:
    """One window of Chromium at an address."""

    def __init__(self, program: str, flags: list[str], address: str, folder: str) -> None:
        # The browser reads commands from 3 and answers on 4; its ends are moved away from these first.
        ends, self._out = os.pipe()
        self._in, answers = os.pipe()
        read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (ends, answers))
        wanted = [program, "--headless", f"--user-data-dir={folder}", "--window-size=1280,1000"]
        quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
        moved = ["bash", "-c", f'exec 3<&{read} 4>&{write}; exec "$@"', "bash"]
        words = [*moved, *wanted, *quiet, *flags, "--remote-debugging-pipe"]
        self.process = subprocess.Popen(words, pass_fds=(read, write), stderr=subprocess.DEVNULL)
        for end in (ends, answers, read, write):
            os.close(end)
        self._told, self._count, self._session = b"", 0, {}
        target = self.ask("Target.createTarget", url=address)["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to one command; what the browser tells besides is passed over."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60
        while True:
            while b"\0" not in self._told:
                assert select.select([self._in], [], [], end - time.monotonic())[0], f"no answer to {method}"
                self._told += os.read(self._in, 1 << 16)
            line, self._told = self._told.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def evaluate(self, expression: str) -> Any:
        """The value of an expression."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 60, every: float = 0.02) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while not (found := self.evaluate(expression)):
            assert time.monotonic() < end, f"{expression} did not become true"
            time.sleep(every)
        return found

    def tap(self, x: float, y: float) -> None:
        """Press and release the left button."""
        at: dict[str, Any] = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, **at)

    def close(self) -> None:
        """End the browser."""
        self.process.terminate()
        self.process.wait(30)
        for end in (self._in, self._out):
            os.close(end)
