"""Write a file beside its place and move it there, so that readers see the old one or the new one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """A name to write to; it becomes `path` when the block ends well and is removed when it does not.

    The ending of the name is kept, for some writers go by it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{os.getpid()}.draft.{path.name}")
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
