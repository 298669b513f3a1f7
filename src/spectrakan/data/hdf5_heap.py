"""Damage in an HDF5 file that its own library does not see, but waits on without end.

Texts of variable length and the references from a netCDF variable to its axes lie in global heaps. A heap has
no checksum, and the library follows the sizes written in it; one flipped bit in a size sends it round in
circles inside C code, where no signal and no exception reaches. So the sizes are checked here first.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

SIGNATURE = b"GCOL\x01\x00\x00\x00"
"""Four letters, version 1 and three reserved bytes open a heap, followed by its size."""

HEADER = 16
"""Bytes before the first object of a heap, and bytes before the content of each object."""


def find_damaged_heap(path: Path) -> int | None:
    """Byte at which the first heap with impossible sizes begins, or None."""
    with path.open("rb") as stream:
        if not stream.read(1):
            return None
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            start = content.find(SIGNATURE)
            while start >= 0:
                if not _sizes_add_up(content, start):
                    return start
                start = content.find(SIGNATURE, start + len(SIGNATURE))
    return None


def _sizes_add_up(content: mmap.mmap, start: int) -> bool:
    """Walk from object to object as the library does; each must end inside the heap, the heap in the file."""
    if start + HEADER > len(content):
        return False
    (total,) = struct.unpack_from("<Q", content, start + 8)
    place, end = start + HEADER, start + total
    if total < HEADER or end > len(content):
        return False
    while place + HEADER <= end:
        index, _, size = struct.unpack_from("<HH4xQ", content, place)
        # Object 0 is the free rest, whose size counts its own header; others are padded to 8 bytes.
        step = size if index == 0 else HEADER + -(-size // 8) * 8
        if step < HEADER or place + step > end:
            return False
        place += step
    return True
