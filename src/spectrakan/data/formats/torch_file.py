"""`.pt` files as containers: a dictionary of tensors, read with `weights_only`: nothing in it runs."""

from __future__ import annotations

import mmap
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectrakan.data.container import Container
from spectrakan.data.decoding import MAX_DEPTH, decoding, mismatch, require_size
from spectrakan.data.formats.npz import require_bounded
from spectrakan.fields import Source


def open_torch(path: Path) -> Container:
    """The tensors of a saved dictionary (nested ones as `group/name`); they are held in memory.

    A file that would run code when loaded is refused by torch's restricted unpickler. Lists of texts beside the
    tensors (names of fields or parameters) become arrays of text, single texts and numbers attributes.
    """
    size = path.stat().st_size
    with decoding(path, kind=".pt dictionary of tensors"):
        _check_archive(path)
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(content, Tensor):
        content = {"values": content}
    if not isinstance(content, Mapping):
        raise mismatch(path, "", "a dictionary of tensors", type(content).__name__)
    arrays: dict[str, Source] = {}
    attributes: dict[str, Any] = {}
    total = 0
    waiting: list[tuple[str, Any]] = [("", content)]
    with decoding(path, kind=".pt dictionary of tensors"):
        while waiting:
            key, value = waiting.pop()
            if key.count("/") > MAX_DEPTH:
                raise mismatch(path, f"{key[:40]}...", f"dictionaries at most {MAX_DEPTH} deep", "deeper ones")
            if isinstance(value, Mapping):
                waiting += [(f"{key}/{name}" if key else str(name), part) for name, part in value.items()][::-1]
            elif isinstance(value, Tensor):
                # A view can repeat one stored number without end.
                total += value.numel() * value.element_size()
                require_size(path, key, total, size)
                with decoding(path, key, kind="tensor"):
                    arrays[key] = value.detach().resolve_conj().resolve_neg().numpy()
            elif isinstance(value, list | tuple) and value and all(isinstance(part, str) for part in value):
                arrays[key] = np.array(value)
            elif isinstance(value, str | int | float):
                attributes[key] = value
    return Container(path, ".pt", arrays, {"": attributes})


def _check_archive(path: Path) -> None:
    """Check the archive before torch reads it: sizes, and checksums, which torch does not compare.

    The format before torch 1.6 is a bare pickle and has neither. `bytearray` is the one thing that the
    restricted unpickler makes at any size, and no tensor needs it.
    """
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(b"bytearray") >= 0:
            raise mismatch(path, "", "tensors", "a byte array")
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        require_bounded(path, archive, {zipfile.ZIP_STORED})
        if (damaged := archive.testzip()) is not None:
            raise mismatch(path, damaged, "bytes that fit their checksum", "others")
