"""One process at a time in a run folder.

The lock is the operating system's (flock): it dies with its holder, so a run that was killed leaves
nothing to clean up, and there is no moment at which two processes can both believe they hold it.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
from pathlib import Path
from types import TracebackType

from spectrakan.errors import RunError


class RunLock:
    """Hold `path` from `with` to its end; who comes second gets a `RunError` that names the holder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def __enter__(self) -> RunLock:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise RunError(
                f"'{self.path.parent}' is in use by {_holder(self.path)}; wait for it, or choose another folder"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps({"pid": os.getpid(), "host": platform.node()}).encode())
        self._handle = handle
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The file stays: removing it would let a third process lock a new file of the same name.
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None


def _holder(path: Path) -> str:
    try:
        content = json.loads(path.read_text())
        return f"process {content['pid']} on {content['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process that has just begun"
