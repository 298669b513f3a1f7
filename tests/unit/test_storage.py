"""Folders that are whole or refused: bounded reads of regular files, kept versions, failures that are named."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import time
import tracemalloc
from pathlib import Path

import pytest
import torch

from spectrakan import storage
from spectrakan.errors import DataFormatError, RunError
from spectrakan.storage import (
    Bundle,
    load_bundle,
    read_json,
    require_plain_weights,
    require_writable,
    save_bundle,
    versions,
    write_text_atomically,
)


def bundle(number: float = 1.0) -> Bundle:
    return Bundle(tensors={"weights": {"a": torch.full((3,), number)}}, documents={"model": {"number": number}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_bundle(tmp_path / "saved", bundle())
    return tmp_path / "saved"


def declare(folder: Path, name: str, size: int, digest: str | None = None) -> None:
    """Change what the manifest says of a file."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": size, "sha256": digest or manifest["files"][name]["sha256"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("declared", [12, 5 * 2**30, 2**60, -1])
def test_a_sparse_file_of_gigabytes_is_refused_unread(folder: Path, declared: int):
    with (folder / "weights.safetensors").open("wb") as file:
        file.truncate(5 * 2**30)
    declare(folder, "weights.safetensors", declared)
    tracemalloc.start()
    begin = time.perf_counter()
    with pytest.raises(DataFormatError, match=r"at most|more than the limit"):
        load_bundle(folder)
    assert time.perf_counter() - begin < 1.0
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["weights.safetensors", "model.json", "manifest.json"])
@pytest.mark.parametrize("kind", ["fifo", "device", "socket", "folder"])
def test_only_regular_files_are_opened(folder: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch):
    (folder / name).unlink()
    monkeypatch.chdir(folder)  # names of sockets are short
    if kind == "fifo":
        os.mkfifo(name)
    elif kind == "device":
        Path(name).symlink_to("/dev/zero")
    elif kind == "folder":
        Path(name).mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
    begin = time.perf_counter()
    with pytest.raises(DataFormatError, match=r"not a regular file|has no manifest"):
        load_bundle(folder)
    assert time.perf_counter() - begin < 1.0


def test_a_link_to_a_regular_file_is_read(folder: Path):
    """Caches of model hubs hold links."""
    moved = folder.parent / "blob"
    (folder / "weights.safetensors").rename(moved)
    (folder / "weights.safetensors").symlink_to(moved)
    assert load_bundle(folder).tensors["weights"]["a"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000])
def test_nested_json_is_refused(folder: Path, text: str):
    (folder / "model.json").write_text(text)
    declare(folder, "model.json", len(text), hashlib.sha256(text.encode()).hexdigest())
    with pytest.raises(DataFormatError, match="not valid JSON"):
        load_bundle(folder)
    (folder / "manifest.json").write_text(text)
    with pytest.raises(DataFormatError, match="not valid JSON"):
        load_bundle(folder)
    with pytest.raises(DataFormatError, match="not valid JSON"):
        read_json(folder / "manifest.json")


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.tensor([1.0, torch.nan]), "holds a NaN"),
        (torch.tensor([torch.inf]), "infinity"),
        (torch.ones(2, dtype=torch.complex64), "complex64"),
        (torch.ones(2).to(torch.float8_e4m3fn), "float8_e4m3fn"),
    ],
)
def test_weights_are_finite_numbers_of_plain_types(tmp_path: Path, tensor: torch.Tensor, message: str):
    require_plain_weights({"a": torch.ones(2, dtype=torch.bfloat16), "count": torch.tensor(3)}, "here")
    with pytest.raises(DataFormatError, match=f"here: 'b' .*{message}"):
        require_plain_weights({"b": tensor}, "here")
    if "NaN" not in message and "infinity" not in message:
        save_bundle(tmp_path / "odd", Bundle(tensors={"weights": {"b": tensor}}, documents={}))
        with pytest.raises(DataFormatError, match=message):
            load_bundle(tmp_path / "odd")


def test_the_last_versions_are_kept_and_older_ones_go(tmp_path: Path):
    place = tmp_path / "last"
    for number in range(5):
        save_bundle(place, bundle(number), keep=3)
    assert [load_bundle(path).documents["model"]["number"] for path in versions(place)] == [4, 3, 2]
    save_bundle(place, bundle(9), keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_after_a_cut_between_renames_the_newest_version_is_read(tmp_path: Path):
    place = tmp_path / "last"
    for number in range(3):
        save_bundle(place, bundle(number), keep=2)
    place.rename(tmp_path / "gone")
    assert load_bundle(place).documents["model"]["number"] == 1
    save_bundle(place, bundle(7), keep=2)
    assert [load_bundle(path).documents["model"]["number"] for path in versions(place)] == [7, 1]


def test_a_full_disk_is_named_with_file_and_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save_bundle(tmp_path / "last", bundle())

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "_write", full)
    with pytest.raises(RunError, match=r"cannot write '.*last': the disk is full; free space there"):
        save_bundle(tmp_path / "last", bundle(2.0))
    with pytest.raises(RunError, match=r"cannot write '.*note\.txt': the disk is full"):
        write_text_atomically(tmp_path / "note.txt", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["last"], "no draft is left"
    assert load_bundle(tmp_path / "last").documents["model"]["number"] == 1.0


def test_a_folder_that_cannot_be_written_is_refused_beforehand(tmp_path: Path):
    require_writable(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot write"):
        require_writable(tmp_path / "file" / "below")
    if Path("/proc").is_dir():
        with pytest.raises(RunError, match="cannot write"):
            require_writable(Path("/proc/none"))
