"""Open files, kept per process, so that arrays can be pickled and read from worker processes."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spectrakan.data.source import Stamp

MOST_OPEN = 16
"""Files kept open at a time; the one used longest ago is closed first."""

_open: OrderedDict[tuple[int, str, Stamp], tuple[str, Any]] = OrderedDict()


def opened(path: Path, stamp: Stamp, opener: Callable[[Path], Any]) -> Any:
    """The handle that `opener` gives for a path, from this process's own table.

    The process id is part of the key: a handle inherited by `fork` shares its library's state with the parent
    and must not be used. A file that is no longer the one of the stamp is refused.
    """
    kind = f"{opener.__module__}.{opener.__qualname__}"
    key = (os.getpid(), str(path), stamp)
    if key in _open and _open[key][0] == kind:
        _open.move_to_end(key)
        return _open[key][1]
    stamp.check(path)
    handle = opener(path)
    _open[key] = (kind, handle)
    while len(_open) > MOST_OPEN:
        (owner, _, _), (_, oldest) = _open.popitem(last=False)
        if owner == os.getpid():
            oldest.close()
    return handle


@contextmanager
def released(path: Path) -> Iterator[None]:
    """Close what the block opened of a path and what was not open before; arrays open it again when read."""
    before = set(_open)
    try:
        yield
    finally:
        for key in [key for key in _open if key not in before and key[:2] == (os.getpid(), str(path))]:
            _, handle = _open.pop(key)
            handle.close()
