"""Files that lead elsewhere, never end, or unpack without limit: each is refused, soon and in little memory."""

from __future__ import annotations

import io
import os
import re
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
import numpy as np
import pytest
import torch

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


def test_virtual_datasets(tmp_path: Path):
    numbers = np.random.default_rng(0).standard_normal(SHAPE)
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["values"] = numbers
    virtual(tmp_path / "set.h5", "part.h5")
    refused(tmp_path / "set.h5", "a virtual dataset, which reads other files; copy the arrays into one file")


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


# No files


def test_sparse_files_that_declare_what_is_not_on_the_disk(tmp_path: Path):
    """Five gigabytes of holes: an npz without compression, a torch file before its archives."""
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("values.npy", npy((5, 1, 2**27, 1)))
    (tmp_path / "old.pt").write_bytes(b"\x80\x02")
    for name in ("set.npz", "old.pt"):
        os.truncate(tmp_path / name, 5 * 2**30)
        begin = time.perf_counter()
        refused(tmp_path / name, "stored bytes")
        assert time.perf_counter() - begin < 5.0


def test_what_is_no_regular_file(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.h5")
    refused(tmp_path / "pipe.h5", "a device, pipe or socket")
    refused(Path("/dev/zero"), "a device, pipe or socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        refused(tmp_path / "s", "a device, pipe or socket")
    (tmp_path / "set.zarr").mkdir()
    refused(tmp_path / "set.zarr", r"a folder .*Trajectories\.from_xarray")
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
    "groups.h5": ("groups at most 32 deep", write_nested_groups),
    "circle.h5": ("no known meaning", write_circular_groups),
    "dictionaries.pt": ("dictionaries at most 32 deep|RecursionError", write_nested_dictionaries),
    "schema.h5": ("schema", write_nested_schema),
    "header.npz": ("readable npz", write_nested_header),
    "names.npz": ("texts", write_endless_names),
}


LOAD = """
import resource, sys, time, xarray, h5netcdf
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
    with h5py.File(tmp_path / "set.h5", "w") as file:
        file.create_dataset("values", data=values, chunks=(1, 5, 256, 256, 1), compression="gzip", shuffle=True)
    np.savez_compressed(tmp_path / "set.npz", values=values)
    for name in ("set.h5", "set.npz"):
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
