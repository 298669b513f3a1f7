"""Signals of a run: end after the running step, end at once where nothing is lost, or save.

SIGTERM, SIGINT (Ctrl-C) and SIGHUP end a run; SIGUSR1 saves a checkpoint and goes on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(BaseException):
    """A signal ended the run; `code` is the exit code that shells expect: 128 and the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.code = 128 + number


class StopRequest:
    """Keeps a signal while `patient`, and raises `Stopped` on it otherwise, or when it comes twice."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.patient = False
        self.saves = False

    def __call__(self) -> bool:
        """Whether a stop was asked for."""
        return self.number is not None

    def take_save(self) -> bool:
        """Whether a checkpoint was asked for since the last call."""
        asked, self.saves = self.saves, False
        return asked

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle an ending signal."""
        again = self.number is not None
        self.number = number
        if again or not self.patient:
            raise Stopped(number)

    def handle_save(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal that asks for a checkpoint."""
        self.saves = True


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Take the signals for the time of a run; a run in another thread than the main one cannot."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.handle) for number in ENDING}
    before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, request.handle_save)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
