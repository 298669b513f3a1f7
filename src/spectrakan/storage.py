"""Folders of tensors and JSON that load unchanged, or are refused.

`manifest.json` lists every file with its size and SHA-256. A folder is written beside its final path and renamed, so
a crash leaves the old one or the new one, never a mixture. Only regular files of bounded size are read; none is a
pickle.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from spectrakan.config import read_regular
from spectrakan.errors import DataFormatError, RunError

MANIFEST = "manifest.json"
FORMAT = "spectrakan-folder"
VERSION = 2
DOCUMENT_BYTES = 2**26
"""Largest JSON document that is read."""
TENSOR_BYTES = 2**32
"""Largest file of tensors that is read: 1e9 numbers of four bytes."""
PLAIN_TYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
)  # fmt: skip
"""Types of numbers that weights may have."""
FULL = {errno.ENOSPC: "the disk is full", errno.EFBIG: "the file would be too large", errno.EDQUOT: "quota exceeded"}


@dataclass(frozen=True)
class Bundle:
    """What a folder holds: tensors by file and name, and JSON documents by file."""

    tensors: Mapping[str, Mapping[str, Tensor]]
    documents: Mapping[str, Any]


def save_bundle(folder: Path, bundle: Bundle, *, keep: int = 1) -> None:
    """Write a bundle as `folder`, replacing the previous one in one step; the last `keep` versions are kept.

    If that fails, `RunError` names the file and a remedy, and the previous version is intact.
    """
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.draft")
    with _writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            files = {}
            for name, tensors in bundle.tensors.items():  # dense copies, because the format holds plain arrays only
                plain = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
                files[f"{name}.safetensors"] = safetensors.torch.save(plain)
            files |= {f"{name}.json": _json(document) for name, document in bundle.documents.items()}
            entries = {name: _entry(content) for name, content in sorted(files.items())}
            files[MANIFEST] = _json({"format": FORMAT, "version": VERSION, "files": entries})
            for name, content in files.items():
                _write(draft / name, content)
            _sync_folder(draft)
            _move_into_place(draft, folder, keep)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def load_bundle(folder: Path) -> Bundle:
    """Read a bundle, checking every byte of it; `DataFormatError` says what is wrong with which file."""
    if not (found := versions(folder)):
        kind = "a file" if folder.exists() else "nothing"
        raise DataFormatError(f"expected a saved folder at '{folder}', found {kind}")
    folder = found[0]
    tensors: dict[str, Mapping[str, Tensor]] = {}
    documents: dict[str, Any] = {}
    for name, entry in _read_manifest(folder).items():
        content = _read_listed(folder / name, entry)
        stem, _, ending = name.rpartition(".")
        if ending == "json":
            documents[stem] = parse_json(content, folder / name)
        else:
            tensors[stem] = _unpack(content, folder / name)
    return Bundle(tensors=tensors, documents=documents)


def versions(folder: Path) -> list[Path]:
    """The versions of a bundle that are on disk, newest first; after a crash the newest may be an older one."""
    beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
    older = [path for path in beside if path.name.startswith(f".{folder.name}.previous")]
    older.sort(key=lambda path: (len(path.name), path.name))
    return [path for path in (folder, *older) if path.is_dir()]


def require_plain_weights(tensors: Mapping[str, Tensor], where: str, *, finite: bool = True) -> None:
    """Refuse tensors that are complex, of an exotic type or (with `finite`) hold a NaN or an infinity."""
    for name, tensor in tensors.items():
        if tensor.dtype not in PLAIN_TYPES:
            known = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in PLAIN_TYPES))
            raise DataFormatError(f"{where}: '{name}' has the type {tensor.dtype}; weights must be one of {known}")
        if finite and tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise DataFormatError(f"{where}: '{name}' holds a NaN or an infinity, expected finite numbers")


def require_writable(folder: Path) -> None:
    """Refuse a folder in which no file can be made, or which cannot be made itself; nothing is left behind."""
    present = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    with _writing(folder), tempfile.TemporaryFile(dir=present):
        pass


def write_text_atomically(path: Path, text: str) -> None:
    """As `write_bytes_atomically`, in UTF-8."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new one, never a part."""
    with drafted(path) as draft:
        _write(draft, content)


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; it becomes `path` when the block succeeds and is removed otherwise."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    with _writing(path):
        try:
            yield draft
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
            draft.replace(path)
            _sync_folder(path.parent)
        finally:
            draft.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """A JSON file of bounded size; anything else raises `DataFormatError`."""
    return parse_json(_read(path, DOCUMENT_BYTES), path)


def parse_json(content: bytes, path: Path) -> Any:
    """The document in the bytes of `path`; damage and too deep nesting raise `DataFormatError`."""
    try:
        return json.loads(content)
    except RecursionError:
        raise DataFormatError(f"'{path}' is not valid JSON: it is nested too deeply") from None
    except ValueError as problem:
        raise DataFormatError(f"'{path}' is not valid JSON: {problem}") from None


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn failures of the system into a `RunError` that names the file and a remedy."""
    try:
        yield
    except OSError as problem:
        full = FULL.get(problem.errno or 0)
        remedy = "free space there or choose another folder" if full else "choose a folder that can be written"
        raise RunError(f"cannot write '{path}': {full or problem.strerror or problem}; {remedy}") from None


def _previous(folder: Path, number: int) -> Path:
    return folder.with_name(f".{folder.name}.previous{number if number > 1 else ''}")


def _move_into_place(draft: Path, folder: Path, keep: int) -> None:
    """Rename from the oldest version to the draft; at every instant the newest version on disk is complete."""
    known = len(versions(folder))
    for number in range(known, 0, -1):
        newer = folder if number == 1 else _previous(folder, number - 1)
        if newer.exists():
            shutil.rmtree(_previous(folder, number), ignore_errors=True)
            newer.rename(_previous(folder, number))
    draft.rename(folder)
    _sync_folder(folder.parent)
    for path in versions(folder)[keep:]:
        shutil.rmtree(path, ignore_errors=True)


def _entry(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _read_manifest(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / MANIFEST
    if not path.is_file():
        raise DataFormatError(f"'{folder}' has no {MANIFEST}: it was not saved by spectrakan, or not completely")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or manifest.keys() != {"format", "version", "files"}:
        raise DataFormatError(f"'{path}' is damaged: expected the keys format, version and files")
    if manifest["format"] != FORMAT or manifest["version"] != VERSION:
        raise DataFormatError(
            f"'{path}' is of format {manifest['format']!r} version {manifest['version']!r}; "
            f"this release reads {FORMAT!r} version {VERSION}"
        )
    files = manifest["files"]
    if not isinstance(files, dict) or not all(_is_entry(name, entry) for name, entry in files.items()):
        raise DataFormatError(f"'{path}' is damaged: 'files' must map plain file names to sizes and checksums")
    present = {item.name for item in folder.iterdir()} - {MANIFEST}
    if missing := sorted(files.keys() - present):
        raise DataFormatError(f"'{folder}' is incomplete: missing {', '.join(missing)}")
    if foreign := sorted(present - files.keys()):
        raise DataFormatError(f"'{folder}' holds files that are not in its manifest: {', '.join(foreign)}")
    return files


def _is_entry(name: str, entry: Any) -> bool:
    if Path(name).name != name or not name.endswith((".json", ".safetensors")):
        return False
    kinds = {key: type(value) for key, value in entry.items()} if isinstance(entry, dict) else {}
    return kinds == {"bytes": int, "sha256": str}


def _read_listed(path: Path, entry: Mapping[str, Any]) -> bytes:
    """The bytes of a file, if they are those that the manifest lists; a file of another size is not even read."""
    limit = DOCUMENT_BYTES if path.suffix == ".json" else TENSOR_BYTES
    if entry["bytes"] > limit:
        raise DataFormatError(f"'{path}' is declared to have {entry['bytes']} bytes, more than the limit of {limit}")
    content = _read(path, entry["bytes"])
    if _entry(content) != entry:
        raise DataFormatError(f"'{path}' was changed or damaged: its SHA-256 is not the one recorded")
    return content


def _unpack(content: bytes, path: Path) -> dict[str, Tensor]:
    try:
        tensors = safetensors.torch.load(content)
    except (safetensors.SafetensorError, KeyError, ValueError, AttributeError, RuntimeError) as problem:
        raise DataFormatError(f"'{path}' is not a safetensors file: {problem}") from None
    require_plain_weights(tensors, f"'{path}'", finite=False)
    return tensors


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def _read(path: Path, limit: int) -> bytes:
    try:
        return read_regular(path, limit)
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
