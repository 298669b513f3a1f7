"""Thousands of damaged data files and models: each is refused by one `DataFormatError` or loaded correctly, in at
most 5 s and 1 GB."""

from __future__ import annotations

import hashlib
import json
import pickle
import selectors
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

SECONDS_A_FILE = 5.0
GROWTH_KIBIBYTES = 2**20
"""Memory that all damaged files together may take beyond what the sound ones take (1 GiB)."""
CHECKED = {"saved_model", "native.h5", "steady.h5", "plain.npz", "packed.npz", "pair.pt"}
"""Files whose every byte is under a checksum: damage must be refused or have changed nothing."""

Damage = Callable[[bytes, np.random.Generator], bytes]


def truncate(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(0, max(1, len(content)))]


def behead(content: bytes, rng: np.random.Generator) -> bytes:
    return content[rng.integers(1, max(2, len(content) // 2)) :]


def flip(content: bytes, rng: np.random.Generator, bits: int = 1) -> bytes:
    damaged = bytearray(content)
    for place in rng.integers(0, max(1, len(content)), bits) if content else ():
        damaged[place] ^= 1 << rng.integers(0, 8)
    return bytes(damaged)


def flip_many(content: bytes, rng: np.random.Generator) -> bytes:
    return flip(content, rng, int(rng.choice([2, 8, 64])))


def flip_in_front(content: bytes, rng: np.random.Generator) -> bytes:
    """Where most formats keep what they say about themselves."""
    return flip(content[:1024], rng, int(rng.choice([1, 4]))) + content[1024:]


def blank(content: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(0, max(1, len(content))))
    length = min(int(rng.choice([8, 64, 512])), len(content) - start)
    return content[:start] + bytes(length) + content[start + length :]


def scramble(content: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(0, max(1, len(content))))
    length = min(int(rng.choice([4, 32, 256])), len(content) - start)
    return content[:start] + rng.bytes(length) + content[start + length :]


def double(content: bytes, rng: np.random.Generator) -> bytes:
    return content + content[: rng.integers(0, max(1, len(content)))]


def turn_halves(content: bytes, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(0, max(1, len(content))))
    return content[place:] + content[:place]


def replace_by_pickle(content: bytes, rng: np.random.Generator) -> bytes:
    return pickle.dumps({"values": content[: rng.integers(0, 100)]}, protocol=int(rng.integers(0, 6)))


def empty(content: bytes, rng: np.random.Generator) -> bytes:
    return b""


BYTES: tuple[Damage, ...] = (
    *(truncate, behead, flip, flip, flip_many, flip_in_front, flip_in_front, blank, scramble),
    *(double, turn_halves, replace_by_pickle, empty),
)


def damage_bytes(path: Path, rng: np.random.Generator) -> str:
    """Damage one file (of a folder, one of those in it), or remove it."""
    if path.is_dir():
        parts = sorted(part for part in path.rglob("*") if part.is_file())
        path = parts[rng.integers(len(parts))]
        if rng.random() < 0.1:
            path.unlink()
            return f"removed {path.name}"
    how = BYTES[rng.integers(len(BYTES))]
    path.write_bytes(how(path.read_bytes(), rng))
    return f"{how.__name__} {path.name}"


def damage_arrays(path: Path, rng: np.random.Generator) -> str:
    """Keep a file of HDF5 or npz sound, but change what its arrays are."""
    if path.suffix == ".npz":
        with np.load(path) as stored:
            arrays = dict(stored)
    else:
        arrays = {}
        with h5py.File(path) as file:
            file.visititems(lambda key, item: arrays.update({key: item[...]} if hasattr(item, "shape") else {}))
    names = sorted(arrays)
    name = names[rng.integers(len(names))]
    how, new = _changed_array(arrays[name], rng)
    if path.suffix == ".npz":
        arrays.pop(name)
        np.savez(path, **(arrays | ({} if new is None else {name + ("_" if how == "renamed" else ""): new})))
        return f"{how} {name}"
    with h5py.File(path, "r+") as file:
        del file[name]
        if new is not None:
            file[name + ("_" if how == "renamed" else "")] = new
    return f"{how} {name}"


def _changed_array(array: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray | None]:
    changes: dict[str, Callable[[], np.ndarray | None]] = {
        "renamed": lambda: array,
        "deleted": lambda: None,
        "axes swapped": lambda: array.T,
        "axes rolled": lambda: np.moveaxis(array, 0, -1) if array.ndim else array,
        "emptied": lambda: array.reshape(-1)[:0],
        "one axis more": lambda: array[None],
        "complex": lambda: array.astype(np.complex64) if array.dtype.kind in "fiu" else array[None],
        "text": lambda: np.full(array.shape, b"x", "S3"),
        "shorter": lambda: array[:-1] if array.ndim else array,
        "not finite": lambda: np.full(array.shape, np.nan),
        "scalar": lambda: np.float64(3.0),
        "structured": lambda: np.zeros(array.shape, [("a", "f4"), ("b", "i2")]),
    }
    how = sorted(changes)[rng.integers(len(changes))]
    return how, changes[how]()


def damage_metadata(path: Path, rng: np.random.Generator) -> str:
    """Keep the description of a model JSON, but change what it says, with checksums made anew."""
    part = path / "model.json"
    entries = json.loads(part.read_text())
    places: list[tuple[dict | list, str | int]] = []
    waiting = [entries]
    while waiting:
        inner = waiting.pop()
        for key, value in list(inner.items() if isinstance(inner, dict) else enumerate(inner)):
            places.append((inner, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    if places:
        inner, key = places[rng.integers(len(places))]
        others = [
            0,
            -1,
            2**31,
            2**62,
            1.5,
            None,
            True,
            "",
            "pickle",
            "|O",
            "<f4",
            "NaN",
            [],
            {},
            [2**40],
            {"id": "x"},
        ]
        inner[key] = others[rng.integers(len(others))]
    part.write_text(json.dumps(entries))
    manifest = json.loads((path / "manifest.json").read_text())
    content = part.read_bytes()
    manifest["files"][part.name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return f"metadata {part.name}"


def damaged_copies(sound: list[Path], folder: Path, count: int) -> Iterator[tuple[Path, str, Path]]:
    """Copies with damage of known kind; a fourth of those that have named arrays are damaged in these."""
    for number in range(count):
        rng = np.random.default_rng(number)
        original = sound[number % len(sound)]
        ending = (
            original.suffix
            if rng.random() < 0.9 or original.name == "saved_model"
            else str(rng.choice([".h5", ".nc", ".npz", ".pt", ".mat"]))
        )
        copy = folder / f"{number:04d}" / f"{original.stem}{ending}"
        copy.parent.mkdir()
        shutil.copytree(original, copy) if original.is_dir() else shutil.copy(original, copy)
        structured = original.suffix in {".h5", ".hdf5", ".npz"} and rng.random() < 0.25
        if original.is_dir() and rng.random() < 0.5:
            how = damage_metadata(copy, rng)
        elif structured:
            how = damage_arrays(original_kind(copy, original), rng)
        else:
            how = damage_bytes(copy, rng)
        yield copy, how, original


def original_kind(copy: Path, original: Path) -> Path:
    """Under its own ending, by which the damager knows its kind."""
    return copy.rename(copy.with_suffix(original.suffix)) if copy.suffix != original.suffix else copy


class Loader:
    """A process that loads files; it is asked for one at a time and given a limited time."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("load_files.py"))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(self.process.stdout, selectors.EVENT_READ)

    def load(self, path: Path, seconds: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        if not self.waiting.select(seconds):
            return {"word": "hung", "detail": f"no answer in {seconds} s", "kibibytes": 0}
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        return {"word": "crashed", "detail": f"exit code {self.process.wait()}", "kibibytes": 0}

    def close(self) -> None:
        self.waiting.close()
        self.process.kill()
        self.process.communicate()


def fuzz(sound: list[Path], folder: Path, count: int) -> Counter[str]:
    """How often each word came, and beside it the longest time in ms and the largest growth in MB of any file."""
    loader = Loader()
    words: Counter[str] = Counter()
    longest = growth = 0.0
    failures = []
    try:
        intact = {path.name: loader.load(path, 120.0) for path in sound}
        assert {entry["word"] for entry in intact.values()} == {"loaded"}, intact
        before = max(entry["kibibytes"] for entry in intact.values())
        for path, how, original in damaged_copies(sound, folder, count):
            start = time.perf_counter()
            result = loader.load(path, SECONDS_A_FILE)
            longest = max(longest, time.perf_counter() - start)
            growth = max(growth, result["kibibytes"] - before)
            word = result["word"]
            unchanged = result["detail"] == intact[original.name]["detail"]
            by_bytes = how.split()[0] in {damage.__name__ for damage in BYTES}
            if word == "loaded" and not unchanged and by_bytes and original.name in CHECKED:
                word = "wrong"
            if result["kibibytes"] > before + GROWTH_KIBIBYTES:
                word = "large"
            words[f"{word} unchanged" if word == "loaded" and unchanged else word] += 1
            if word not in {"loaded", "refused"}:
                failures.append(f"{path.name} ({how}): {word}: {result['detail']}")
                if word in {"hung", "crashed", "large"}:
                    loader.close()
                    loader = Loader()
            shutil.rmtree(path.parent)
    finally:
        loader.close()
    assert not failures, "\n".join(failures)
    return words + Counter({"ms at most": int(1000 * longest), "MB of growth": int(growth / 1000)})


def test_two_hundred_damaged_files(sound_files: list[Path], tmp_path: Path):
    words = fuzz(sound_files, tmp_path, 200)
    assert words["refused"] + words["loaded"] + words["loaded unchanged"] == 200
    assert words["refused"] > 100
    assert words["loaded unchanged"] > 10, "damage without an effect is no reason to refuse a file"


@pytest.mark.slow
def test_two_thousand_damaged_files(
    sound_files: list[Path], tmp_path: Path, keep_outcome: Callable[[Mapping[str, float]], None]
):
    words = fuzz(sound_files, tmp_path, 2000)
    keep_outcome(words)
    assert words["refused"] + words["loaded"] + words["loaded unchanged"] == 2000
    assert words["refused"] > 1000
    assert words["loaded unchanged"] > 100
