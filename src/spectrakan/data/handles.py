"""Open files, kept per process, so that arrays can be pickled and read from worker processes."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_OPEN = 16
"""Files kept open at a time; the one used longest ago is closed first."""

_open: OrderedDict[tuple[int, str, Any], tuple[str, Any]] = OrderedDict()


def opened(path: Path, stamp: Any, opener: Callable[[Path], Any]) -> Any:
    """The handle that `opener` gives for a path, from this process's own table.

    The process id is part of the key: a handle inherited by `fork` shares its library's state with the parent
    and must not be used. `stamp` tells versions of one path apart.
    """
    kind = f"{opener.__module__}.{opener.__qualname__}"
    key = (os.getpid(), str(path), stamp)
    if key in _open and _open[key][0] == kind:
        _open.move_to_end(key)
        return _open[key][1]
    handle = opener(path)
    _open[key] = (kind, handle)
    while len(_open) > MOST_OPEN:
        (owner, _, _), (_, oldest) = _open.popitem(last=False)
        if owner == os.getpid():
            oldest.close()
    return handle


def close_all() -> None:
    """Close every file that this process holds open; arrays open theirs again when they are read next."""
    while _open:
        (owner, _, _), (_, handle) = _open.popitem()
        if owner == os.getpid():
            handle.close()
