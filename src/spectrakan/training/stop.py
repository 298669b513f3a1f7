"""SIGTERM, SIGINT (Ctrl-C) and SIGHUP end a run after the running step, or at once where nothing is lost."""

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

    def __call__(self) -> bool:
        """Whether a stop was asked for."""
        return self.number is not None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle an ending signal."""
        again = self.number is not None
        self.number = number
        if again or not self.patient:
            raise Stopped(number)


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Take the signals for the time of a run; a run in another thread than the main one cannot."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.handle) for number in ENDING}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
