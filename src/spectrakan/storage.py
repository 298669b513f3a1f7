"""A folder of safetensors and JSON files that is either whole and unchanged, or refused.

`manifest.json` lists every file with its SHA-256. A folder is written beside its place and moved there by
renaming, so a crash leaves the old one or the new one, never a mixture. Nothing here is a pickle.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from spectrakan.errors import DataFormatError

MANIFEST = "manifest.json"
FORMAT = "spectrakan-folder"
VERSION = 1


@dataclass(frozen=True)
class Bundle:
    """What a folder holds: tensors by file and name, and JSON documents by file."""

    tensors: Mapping[str, Mapping[str, Tensor]]
    documents: Mapping[str, Any]


def save_bundle(folder: Path, bundle: Bundle) -> None:
    """Write a bundle as `folder`, replacing what stood there in one step."""
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        files = {f"{name}.safetensors": _pack(tensors) for name, tensors in bundle.tensors.items()}
        files |= {f"{name}.json": _json(document) for name, document in bundle.documents.items()}
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
        files[MANIFEST] = _json({"format": FORMAT, "version": VERSION, "files": digests})
        for name, content in files.items():
            _write(draft / name, content)
        _sync_folder(draft)
        _move_into_place(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def load_bundle(folder: Path) -> Bundle:
    """Read a bundle, checking every byte of it; `DataFormatError` says what is wrong with which file."""
    folder = _complete_version(Path(folder))
    digests = _read_manifest(folder)
    tensors: dict[str, Mapping[str, Tensor]] = {}
    documents: dict[str, Any] = {}
    for name, digest in digests.items():
        content = _read(folder / name)
        if hashlib.sha256(content).hexdigest() != digest:
            raise DataFormatError(f"'{folder / name}' was changed or damaged: its SHA-256 is not the one recorded")
        stem, _, ending = name.rpartition(".")
        if ending == "json":
            documents[stem] = _parse(content, folder / name)
        else:
            tensors[stem] = _unpack(content, folder / name)
    return Bundle(tensors=tensors, documents=documents)


def write_text_atomically(path: Path, text: str) -> None:
    """Write a text file so that readers see the old content or the new one, never a part."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new one, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        _write(draft, content)
        draft.replace(path)
        _sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _move_into_place(draft: Path, folder: Path) -> None:
    """Two renames, for a folder cannot be renamed over a full one; between them `.previous` stands in."""
    previous = _previous(folder)
    if folder.exists():
        shutil.rmtree(previous, ignore_errors=True)
        folder.rename(previous)
    draft.rename(folder)
    _sync_folder(folder.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _complete_version(folder: Path) -> Path:
    if folder.is_dir():
        return folder
    if _previous(folder).is_dir():
        return _previous(folder)
    found = "a file" if folder.exists() else "nothing"
    raise DataFormatError(f"expected a saved folder at '{folder}', found {found}")


def _read_manifest(folder: Path) -> dict[str, str]:
    path = folder / MANIFEST
    if not path.is_file():
        raise DataFormatError(f"'{folder}' has no {MANIFEST}: it was not saved by spectrakan, or not completely")
    manifest = _parse(_read(path), path)
    if not isinstance(manifest, dict) or manifest.keys() != {"format", "version", "files"}:
        raise DataFormatError(f"'{path}' is damaged: expected the keys format, version and files")
    if manifest["format"] != FORMAT or manifest["version"] != VERSION:
        raise DataFormatError(
            f"'{path}' is of format {manifest['format']!r} version {manifest['version']!r}; "
            f"this release reads {FORMAT!r} version {VERSION}"
        )
    files = manifest["files"]
    if not isinstance(files, dict) or not all(
        isinstance(digest, str) and Path(name).name == name and name.endswith((".json", ".safetensors"))
        for name, digest in files.items()
    ):
        raise DataFormatError(f"'{path}' is damaged: 'files' must map plain file names to checksums")
    present = {item.name for item in folder.iterdir()} - {MANIFEST}
    if missing := sorted(files.keys() - present):
        raise DataFormatError(f"'{folder}' is incomplete: missing {', '.join(missing)}")
    if foreign := sorted(present - files.keys()):
        raise DataFormatError(f"'{folder}' holds files that are not in its manifest: {', '.join(foreign)}")
    return files


def _pack(tensors: Mapping[str, Tensor]) -> bytes:
    """Safetensors bytes; shared or strided memory is copied, for the format holds plain arrays only."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    return safetensors.torch.save(plain)


def _unpack(content: bytes, path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(content)
    except (safetensors.SafetensorError, KeyError, ValueError) as problem:
        raise DataFormatError(f"'{path}' is not a safetensors file: {problem}") from None


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def _parse(content: bytes, path: Path) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise DataFormatError(f"'{path}' is not valid JSON: {problem}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise DataFormatError(f"cannot read '{path}': {problem.strerror}") from None


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can (Windows cannot open folders)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
