"""`.pt` files as containers: a dictionary of tensors, read with `weights_only`: nothing in it runs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spectrakan.data.container import Container
from spectrakan.data.decoding import decoding, mismatch
from spectrakan.data.source import HeldSource, Source


def open_torch(path: Path) -> Container:
    """The tensors of a saved dictionary (nested ones as `group/name`); they are held in memory.

    A file that would run code when loaded is refused by torch's restricted unpickler.
    """
    with decoding(path, kind=".pt dictionary of tensors"):
        _check_sums(path)
        content: Any = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(content, Tensor):
        content = {"values": content}
    if not isinstance(content, Mapping):
        raise mismatch(path, "", "a dictionary of tensors", type(content).__name__)
    arrays: dict[str, Source] = {}
    attributes: dict[str, Any] = {}
    _collect(path, content, "", arrays, attributes)
    return Container(path, ".pt", arrays, {"": attributes})


def _check_sums(path: Path) -> None:
    """Compare the checksums of the archive, for torch does not; its format before 1.6 has none."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            raise mismatch(path, damaged, "bytes that fit their checksum", "others")


def _collect(
    path: Path, content: Mapping[Any, Any], prefix: str, arrays: dict[str, Source], attributes: dict[str, Any]
) -> None:
    for name, value in content.items():
        key = f"{prefix}{name}"
        if isinstance(value, Tensor):
            with decoding(path, key, kind="tensor"):
                arrays[key] = HeldSource(value.detach().resolve_conj().numpy())
        elif isinstance(value, Mapping):
            _collect(path, value, f"{key}/", arrays, attributes)
        elif isinstance(value, str | int | float):
            attributes[key] = value
