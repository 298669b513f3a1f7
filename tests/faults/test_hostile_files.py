"""Files that lead elsewhere, never end, or unpack without limit: each is refused, soon and in little memory."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import h5netcdf
import h5py
import numcodecs
import numpy as np
import pytest
import torch
import zarr

from spectrakan.data import load_dataset
from spectrakan.data.climate import load_climate
from spectrakan.errors import DataFormatError

SECRET = bytes(range(64)) * 12
"""96 float64 numbers of a file that nobody asked for."""
SHAPE = (2, 3, 16, 1)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "secret.bin"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


def refused(path: Path, said: str, seconds: float = 5.0) -> None:
    start = time.perf_counter()
    with pytest.raises(DataFormatError, match=said):
        load_dataset(path)
    assert time.perf_counter() - start < seconds


# Other files


def test_external_storage(tmp_path: Path, secret: Path):
    with h5py.File(tmp_path / "set.h5", "w") as file:
        file.create_dataset("values", SHAPE, "f8", external=[(str(secret), 0, len(SECRET))])
        assert file["values"][0, 0, 0, 0] != 0, "the attack works on h5py itself"
    refused(tmp_path / "set.h5", r"storage in the file '.*secret\.bin'")


def test_external_links(tmp_path: Path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["values"] = np.ones(SHAPE)
    with h5py.File(tmp_path / "set.h5", "w") as file:
        file["values"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/values")
    refused(tmp_path / "set.h5", r"a link to the file '.*other\.h5'")


def test_soft_links_through_an_external_link(tmp_path: Path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["values"] = np.ones(SHAPE)
    with h5py.File(tmp_path / "set.h5", "w") as file:
        file["out"] = h5py.ExternalLink("other.h5", "/")
        file["values"] = h5py.SoftLink("/out/values")
    refused(tmp_path / "set.h5", r"a link to the file 'other\.h5'")


def virtual(path: Path, source: str, shape: tuple[int, ...] = SHAPE) -> None:
    layout = h5py.VirtualLayout(shape, "f8")
    layout[...] = h5py.VirtualSource(source, "values", shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("values", layout)


def test_virtual_datasets_need_permission_and_the_same_folder(tmp_path: Path, secret: Path):
    numbers = np.random.default_rng(0).standard_normal(SHAPE)
    for folder in (tmp_path, secret.parent):
        with h5py.File(folder / "part.h5", "w") as file:
            file["values"] = numbers
    virtual(tmp_path / "set.h5", "part.h5")
    refused(tmp_path / "set.h5", "a virtual dataset, which reads other files; .*allow_virtual=True")
    found = load_dataset(tmp_path / "set.h5", allow_virtual=True)
    np.testing.assert_array_equal(np.asarray(found.values), numbers)
    for outside in (str(secret.parent / "part.h5"), "elsewhere/part.h5", "../part.h5"):
        virtual(tmp_path / "set.h5", outside)
        with pytest.raises(DataFormatError, match="sources in the same folder"):
            load_dataset(tmp_path / "set.h5", allow_virtual=True)
    (tmp_path / "link.h5").symlink_to(secret.parent / "part.h5")
    virtual(tmp_path / "set.h5", "link.h5")
    with pytest.raises(DataFormatError, match="that are no links"):
        load_dataset(tmp_path / "set.h5", allow_virtual=True)


def test_sources_of_virtual_datasets_are_looked_through_as_well(tmp_path: Path, secret: Path):
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file.create_dataset("values", SHAPE, "f8", external=[(str(secret), 0, len(SECRET))])
    virtual(tmp_path / "set.h5", "part.h5")
    with pytest.raises(DataFormatError, match="storage in the file"):
        load_dataset(tmp_path / "set.h5", allow_virtual=True)
    virtual(tmp_path / "set.h5", "absent.h5")
    with pytest.raises(DataFormatError, match="absent"):
        load_dataset(tmp_path / "set.h5", allow_virtual=True)


def test_a_virtual_dataset_with_gaps_is_not_read_as_zeros(tmp_path: Path):
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["values"] = np.ones((1, *SHAPE[1:]))
    layout = h5py.VirtualLayout(SHAPE, "f8")
    layout[:1] = h5py.VirtualSource("part.h5", "values", (1, *SHAPE[1:]))
    with h5py.File(tmp_path / "set.h5", "w") as file:
        file.create_virtual_dataset("values", layout)
    with pytest.raises(DataFormatError, match="sources for 48 of 96 numbers"):
        load_dataset(tmp_path / "set.h5", allow_virtual=True)


def test_external_storage_in_netcdf(tmp_path: Path, secret: Path):
    with h5netcdf.File(tmp_path / "set.nc", "w") as file:
        file.dimensions = {"sample": 2, "time": 3, "x": 16}
        file.create_variable("wind", ("sample", "time", "x"), "f8")
    with h5py.File(tmp_path / "set.nc", "r+") as file:
        del file["wind"]
        wind = file.create_dataset("wind", SHAPE[:3], "f8", external=[(str(secret), 0, len(SECRET))])
        for axis, name in enumerate(("sample", "time", "x")):
            wind.dims[axis].attach_scale(file[name])
    refused(tmp_path / "set.nc", "storage in the file")
    with pytest.raises(DataFormatError, match="storage in the file"):
        load_climate(tmp_path / "set.nc")


@pytest.mark.parametrize("attack", ["external", "virtual"])
def test_storage_elsewhere_in_matlab_files(tmp_path: Path, secret: Path, attack: str):
    with h5py.File(tmp_path / "set.mat", "w", userblock_size=512) as file:
        for name in ("coeff", "sol"):
            if attack == "external":
                file.create_dataset(name, (6, 16), "f8", external=[(str(secret), 0, len(SECRET))])
            else:
                layout = h5py.VirtualLayout((6, 16), "f8")
                layout[...] = h5py.VirtualSource(str(secret), "values", (6, 16))
                file.create_virtual_dataset(name, layout)
    with (tmp_path / "set.mat").open("rb+") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116))
    refused(tmp_path / "set.mat", "numbers inside the file")


def zarr_store(path: Path, version: int = 2, **options: object) -> np.ndarray:
    values = np.random.default_rng(0).standard_normal(SHAPE)
    group = zarr.open_group(path, mode="w", zarr_format=version)
    group.create_array("values", data=values, chunks=(1, 3, 16, 1), **options)
    return values


@pytest.mark.parametrize("version", [2, 3])
def test_symbolic_links_in_a_zarr_folder(tmp_path: Path, secret: Path, version: int):
    store = tmp_path / "set.zarr"
    values = zarr_store(store, version, compressors=None)
    chunk = next(path for path in sorted(store.rglob("*")) if path.stat().st_size == 384)
    chunk.unlink()
    chunk.symlink_to(secret)
    refused(store, "a symbolic link")
    chunk.unlink()
    chunk.write_bytes(values[0].tobytes())
    np.testing.assert_array_equal(np.asarray(load_dataset(store).values), values)
    (tmp_path / "alias.zarr").symlink_to(store)
    np.testing.assert_array_equal(np.asarray(load_dataset(tmp_path / "alias.zarr").values), values)
    shutil.move(store / "values", tmp_path / "moved")
    (store / "values").symlink_to(tmp_path / "moved")
    refused(store, "a symbolic link")


# Code


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("decoy", [True, False])
def test_a_pickle_behind_a_filter_for_text(tmp_path: Path, decoy: bool):
    store = tmp_path / "set.zarr"
    zarr_store(store, compressors=None)
    entries = json.loads((store / "values" / ".zarray").read_text())
    harmless = dict(entries)
    entries |= {"dtype": "|O", "fill_value": "", "filters": [{"id": "vlen-utf8"}]}
    entries |= {"compressor": {"id": "pickle", "protocol": 5}}
    (store / "values" / ".zarray").write_text(json.dumps(entries))
    for chunk in (store / "values").glob("[0-9]*"):
        chunk.write_bytes(pickle.dumps(Payload(tmp_path / "it_ran")))
    if decoy:
        (store / ".zarray").write_text(json.dumps(harmless))
    refused(store, "the codec pickle")
    assert not (tmp_path / "it_ran").exists()


@pytest.mark.parametrize("codec", ["bz2", "lzma", "base64", "json2", "pickle"])
@pytest.mark.parametrize("where", ["filters", "compressor"])
def test_codecs_outside_the_list(tmp_path: Path, codec: str, where: str):
    store = tmp_path / "set.zarr"
    zarr_store(store, compressors=None)
    entries = json.loads((store / "values" / ".zarray").read_text())
    entries[where] = [{"id": codec}] if where == "filters" else {"id": codec}
    (store / "values" / ".zarray").write_text(json.dumps(entries))
    refused(store, codec)


def test_shards_are_refused(tmp_path: Path):
    values = np.random.default_rng(0).standard_normal(SHAPE)
    group = zarr.open_group(tmp_path / "set.zarr", mode="w", zarr_format=3)
    group.create_array("values", data=values, chunks=(1, 3, 8, 1), shards=(2, 3, 16, 1))
    refused(tmp_path / "set.zarr", "the codec sharding_indexed")


def test_an_old_numcodecs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    zarr_store(tmp_path / "set.zarr")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.16.5")
    refused(tmp_path / "set.zarr", r"numcodecs >= 0\.16\.6 \(found 0\.16\.5")


@pytest.mark.parametrize("version", [2, 3])
def test_an_array_of_text_beside_the_fields_is_left_out(tmp_path: Path, version: int):
    values = zarr_store(tmp_path / "set.zarr", version)
    group = zarr.open_group(tmp_path / "set.zarr", mode="r+")
    group.create_array("station", shape=(2,), dtype=str)[:] = np.array(["north", "south"], dtype=object)
    np.testing.assert_array_equal(np.asarray(load_dataset(tmp_path / "set.zarr").values), values)


# What is missing


@pytest.mark.parametrize("version", [2, 3])
def test_an_incomplete_zarr_array_is_not_read_as_zeros(tmp_path: Path, version: int):
    store = tmp_path / "set.zarr"
    zarr_store(store, version, compressors=None)
    next(path for path in sorted(store.rglob("*")) if path.stat().st_size == 384).unlink()
    refused(store, "absent chunks")


# No files


def test_sparse_files_that_declare_what_is_not_on_the_disk(tmp_path: Path):
    """Five gigabytes of holes: an npz without compression, a torch file before its archives, Zarr's metadata."""
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("values.npy", npy((5, 1, 2**27, 1)))
    (tmp_path / "old.pt").write_bytes(b"\x80\x02")
    zarr_store(tmp_path / "set.zarr")
    (tmp_path / "note.zarr").mkdir()
    zarr_store(tmp_path / "note.zarr")
    (tmp_path / "note.zarr" / ".zattrs").touch()
    for path in ("set.npz", "old.pt", "set.zarr/.zgroup", "note.zarr/.zattrs"):
        os.truncate(tmp_path / path, 5 * 2**30)
    for name in ("set.npz", "old.pt", "set.zarr", "note.zarr"):
        begin = time.perf_counter()
        refused(tmp_path / name, "stored bytes|at most 16777216 are expected")
        assert time.perf_counter() - begin < 5.0


def test_what_is_no_regular_file(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.h5")
    refused(tmp_path / "pipe.h5", "a device, pipe or socket")
    refused(Path("/dev/zero"), "a device, pipe or socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        refused(tmp_path / "s", "a device, pipe or socket")
    zarr_store(tmp_path / "set.zarr")
    os.mkfifo(tmp_path / "set.zarr" / "values" / "0.0.0.1")
    refused(tmp_path / "set.zarr", "a device, pipe or socket")
    np.savez(tmp_path / "set.npz", values=np.ones(SHAPE))
    with pytest.raises(DataFormatError, match="a device, pipe or socket"):
        load_dataset(tmp_path / "set.npz", mapping=tmp_path / "pipe.h5")
    (tmp_path / "alias.npz").symlink_to(tmp_path / "set.npz")
    assert float(np.asarray(load_dataset(tmp_path / "alias.npz").values).min()) == 1.0


# Bombs


def npy(shape: tuple[int, ...], dtype: str = "<f8") -> bytes:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    return head.getvalue()


def write_zip_with_a_false_size(path: Path) -> None:
    """Some 200 bytes that declare 4 GB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", npy((2, 1, 2**28, 1)))
    raw = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", raw, raw.index(signature) + offset, 2**32 - 2)
    path.write_bytes(raw)


def write_bz2_bomb(path: Path) -> None:
    """Half a gigabyte of zeros in some hundred bytes: bzip2 has a ratio of a million."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive,
        archive.open("values.npy", "w", force_zip64=True) as member,
    ):
        member.write(npy((2, 1, 2**25, 1)))
        for _ in range(256):
            member.write(bytes(2**21))


def write_mat_bomb(path: Path) -> None:
    """A compressed element of 64 MB of zeros, which read as eight million empty elements."""
    body = zlib.compress(bytes(2**26), 9)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    path.write_bytes(header + struct.pack("<II", 15, len(body)) + body)


def write_view_bomb(path: Path) -> None:
    """One stored number, seen as 2**40 numbers."""
    torch.save({"values": torch.ones(1).expand(2**10, 2**10, 2**10, 2**10, 1)}, path)


def write_byte_array_bomb(path: Path) -> None:
    torch.save({"values": torch.ones(SHAPE)}, path, _use_new_zipfile_serialization=False)
    calls = b"\x80\x02cbuiltins\nbytearray\n(\x8a\x05" + (2**34).to_bytes(5, "little") + b"tR."
    path.write_bytes(calls)


def write_compressed_torch(path: Path) -> None:
    torch.save({"values": torch.zeros(2, 2, 2**26, 1)}, path.with_suffix(".whole"))
    with (
        zipfile.ZipFile(path.with_suffix(".whole")) as whole,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
    ):
        for member in whole.infolist():
            archive.writestr(member.filename, whole.read(member))
    path.with_suffix(".whole").unlink()


def write_hdf5_bomb(path: Path) -> None:
    """Two kilobytes of chunks that declare 4 GB."""
    with h5py.File(path, "w") as file:
        values = file.create_dataset("values", (64, 1, 2**23, 1), "f8", chunks=(1, 1, 2**23, 1), compression="gzip")
        for sample in range(64):
            values.id.write_direct_chunk((sample, 0, 0, 0), zlib.compress(bytes(100)))


def write_hdf5_chain(path: Path) -> None:
    """Deflate after deflate has the square of the ratio."""
    with h5py.File(path, "w") as file:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((1, 1, 2**23, 1))
        plan.set_deflate(9)
        plan.set_filter(h5py.h5z.FILTER_DEFLATE, 0, (9,))
        space = h5py.h5s.create_simple((64, 1, 2**23, 1))
        h5py.h5d.create(file.id, b"values", h5py.h5t.NATIVE_DOUBLE, space, plan)


def write_zarr_bomb(path: Path, compressor: str) -> None:
    """The metadata declare small chunks; the chunks unpack to half a gigabyte."""
    bombs: dict[str, Callable[[], bytes]] = {
        "zstd": lambda: bytes(numcodecs.Zstd(1).encode(bytes(2**29))),
        "blosc": lambda: bytes(numcodecs.Blosc("zstd", clevel=1).encode(bytes(2**29))),
        "lz4": lambda: struct.pack("<I", 2**31 - 1) + bytes(100),
    }
    group = zarr.open_group(path, mode="w", zarr_format=2)
    codec = {"zstd": numcodecs.Zstd(), "blosc": numcodecs.Blosc(), "lz4": numcodecs.LZ4()}[compressor]
    group.create_array("values", data=np.ones(SHAPE), chunks=SHAPE, compressors=codec)
    next((path / "values").glob("0.*")).write_bytes(bombs[compressor]())


def write_zarr_with_huge_chunks(path: Path) -> None:
    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.create_array("values", data=np.ones(SHAPE), chunks=SHAPE, compressors=numcodecs.Zstd())
    metadata = path / "values" / ".zarray"
    entries = json.loads(metadata.read_text()) | {"chunks": [2, 3, 2**28, 1]}
    metadata.write_text(json.dumps(entries))


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


def write_nested_groups(path: Path) -> None:
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(5000):
            group = group.create_group("g")
        group["values"] = np.ones(SHAPE)


def write_circular_groups(path: Path) -> None:
    with h5py.File(path, "w") as file:
        inner = file.create_group("a").create_group("b")
        for number in range(50):
            inner[f"back{number}"] = file["a"]
            file["a"][f"again{number}"] = inner


def write_nested_dictionaries(path: Path) -> None:
    pickled = b"\x80\x02" + b"}X\x01\x00\x00\x00a" * 20_000 + b"}" + b"s" * 20_000 + b"."
    torch.save({}, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, pickled if name.endswith("data.pkl") else content)


def write_nested_schema(path: Path) -> None:
    text = '{"format": "spectrakan-trajectories", "version": 1, "origin": ' + nested(20_000) + "}"
    with h5py.File(path, "w", libver="latest") as file:
        file["values"] = np.ones(SHAPE)
        file.attrs["schema"] = np.bytes_(text.encode())


def write_nested_metadata(path: Path) -> None:
    zarr_store(path)
    (path / "values" / ".zattrs").write_text(nested(100_000))


def write_nested_header(path: Path) -> None:
    head = (nested(3000, "(", ")") + "\n").encode()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("values.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)


def write_endless_names(path: Path) -> None:
    """Texts of no length take no bytes, however many there are."""
    with zipfile.ZipFile(path, "w") as archive:
        values = io.BytesIO()
        np.save(values, np.ones(SHAPE))
        archive.writestr("values.npy", values.getvalue())
        archive.writestr("fields.npy", npy((10**15,), "<U0"))
        archive.writestr("param_names.npy", npy((10**15,), "|S0"))


HOSTILE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "false_size.npz": ("stored bytes", write_zip_with_a_false_size),
    "bz2.npz": ("compression", write_bz2_bomb),
    "bomb.mat": ("unknown type 0", write_mat_bomb),
    "view.pt": ("stored bytes", write_view_bomb),
    "bytes.pt": ("byte array", write_byte_array_bomb),
    "compressed.pt": ("compression", write_compressed_torch),
    "chunks.h5": ("stored bytes", write_hdf5_bomb),
    "chain.h5": ("at most one compressing filter", write_hdf5_chain),
    "zstd.zarr": ("after decoding", lambda path: write_zarr_bomb(path, "zstd")),
    "blosc.zarr": ("after decoding", lambda path: write_zarr_bomb(path, "blosc")),
    "lz4.zarr": ("after decoding", lambda path: write_zarr_bomb(path, "lz4")),
    "chunks.zarr": ("stored bytes", write_zarr_with_huge_chunks),
    "groups.h5": ("groups at most 32 deep", write_nested_groups),
    "circle.h5": ("no known meaning", write_circular_groups),
    "dictionaries.pt": ("dictionaries at most 32 deep|RecursionError", write_nested_dictionaries),
    "schema.h5": ("schema", write_nested_schema),
    "metadata.zarr": ("RecursionError", write_nested_metadata),
    "header.npz": ("readable npz", write_nested_header),
    "names.npz": ("texts", write_endless_names),
}


LOAD = """
import resource, sys, time, xarray, zarr, h5netcdf
from spectrakan.data import load_dataset
from spectrakan.errors import DataFormatError

for path in sys.argv[1:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    try:
        load_dataset(path)
        problem = "loaded"
    except DataFormatError as error:
        problem = str(error)
    seconds = time.perf_counter() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{seconds:.3f} {grown} {problem}", flush=True)
"""
"""Load each file and print the seconds, the memory in KiB beyond all before, and the error."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("hostile")
    for name, (_, write) in HOSTILE.items():
        write(folder / name)
    command = [sys.executable, "-W", "ignore", "-c", LOAD, *(str(folder / name) for name in HOSTILE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(HOSTILE, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("name", HOSTILE)
def test_bombs_are_refused_soon_and_in_little_memory(outcomes: dict[str, str], name: str):
    seconds, kibibytes, problem = outcomes[name].split(maxsplit=2)
    assert float(seconds) < 5.0
    assert int(kibibytes) < 2**18
    assert re.search(HOSTILE[name][0], problem), problem


def test_constant_fields_are_no_bombs(tmp_path: Path):
    """What compresses without limit is accepted up to a size that does no harm."""
    values = np.ones((4, 5, 256, 256, 1))
    group = zarr.open_group(tmp_path / "set.zarr", mode="w")
    group.create_array("values", data=values, chunks=(1, 5, 256, 256, 1))
    with h5py.File(tmp_path / "set.h5", "w") as file:
        file.create_dataset("values", data=values, chunks=(1, 5, 256, 256, 1), compression="gzip", shuffle=True)
    np.savez_compressed(tmp_path / "set.npz", values=values)
    for name in ("set.zarr", "set.h5", "set.npz"):
        assert float(np.asarray(load_dataset(tmp_path / name).values).sum()) == values.size


def test_the_limits_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    np.savez_compressed(tmp_path / "set.npz", values=np.zeros((4, 5, 64, 64, 1)))
    monkeypatch.setattr("spectrakan.data.decoding.FREE_BYTES", 0)
    monkeypatch.setattr("spectrakan.data.decoding.MAX_INFLATION", 10)
    refused(tmp_path / "set.npz", r"bytes of \d+ stored bytes.*SPECTRAKAN_MAX_INFLATION")
    monkeypatch.setattr("spectrakan.data.decoding.MAX_INFLATION", 1100)
    monkeypatch.setattr("spectrakan.data.decoding.MAX_INFLATED", 10_000)
    refused(tmp_path / "set.npz", "at most 10000 bytes of .*SPECTRAKAN_MAX_INFLATED")
    monkeypatch.setattr("spectrakan.data.decoding.MAX_INFLATED", 2**30)
    assert not np.asarray(load_dataset(tmp_path / "set.npz").values).any()


def test_the_limits_are_read_from_the_environment(tmp_path: Path):
    """From the command line nobody can assign to a module; 150 MiB of zeros compress to 150 kB."""
    np.savez_compressed(tmp_path / "set.npz", values=np.zeros((10, 2, 1024, 1024, 1)))
    command = [sys.executable, "-m", "spectrakan", "check", str(tmp_path / "set.npz")]
    strict = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert strict.returncode == 2
    assert "SPECTRAKAN_MAX_INFLATION" in strict.stderr
    wide = os.environ | {"SPECTRAKAN_MAX_INFLATION": "1100"}
    assert "stored bytes" not in subprocess.run(command, capture_output=True, text=True, env=wide).stderr


def test_compressed_data_are_limited_whatever_the_size_of_the_file(tmp_path: Path):
    """16 MiB may inflate to 1.6 GiB by their ratio; 1 GiB is the most in one piece."""
    with zipfile.ZipFile(tmp_path / "set.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("values.npy", np.random.default_rng(0).bytes(2**24))
    content = bytearray((tmp_path / "set.npz").read_bytes())
    declared = content.rindex(b"PK\x01\x02") + 24
    struct.pack_into("<I", content, declared, 2**30 + 2**28)
    (tmp_path / "set.npz").write_bytes(content)
    refused(tmp_path / "set.npz", "found 1342177280 bytes; .*SPECTRAKAN_MAX_INFLATED")
