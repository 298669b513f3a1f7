"""Downloads from a local server that breaks off, lies, forgets ranges or names files outside the folder."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections import namedtuple
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from spectrakan.data.download import PDEBENCH, SERVER, PublishedFile, download
from spectrakan.errors import ConfigError, DataFormatError

CONTENT = np.random.default_rng(0).bytes(3 * 2**20 + 17)
NAME = "2D_rdb_NA_NA.h5"
ENTRY = PublishedFile(NAME, "shallow_water2d", 7, hashlib.md5(CONTENT).hexdigest(), 0.001)  # noqa: S324


class Archive(ThreadingHTTPServer):
    """A server of one file with faults that a test turns on."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.break_after: list[int] = []
        self.ranges = True
        self.status = 0
        self.asked: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file/"


class Handler(BaseHTTPRequestHandler):
    server: Archive

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        content, begin = self.server.content, 0
        if self.server.status:
            self.send_error(self.server.status)
            return
        if asked and self.server.ranges:
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
            if begin >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        rest = content[begin:]
        if self.server.break_after:
            self.wfile.write(rest[: self.server.break_after.pop(0)])
            self.wfile.flush()
            self.connection.close()
            return
        self.wfile.write(rest)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def archive() -> Iterator[Archive]:
    server = Archive()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def fetch(archive: Archive, folder: Path, entry: PublishedFile = ENTRY) -> Path:
    return download(entry.name, folder, address=archive.address, catalog={entry.name: entry})


def test_a_whole_file_arrives_with_progress(archive: Archive, tmp_path: Path):
    seen: list[tuple[int, int]] = []
    path = download(
        NAME, tmp_path / "new", address=archive.address, catalog={NAME: ENTRY},
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert path.read_bytes() == CONTENT
    assert [item.name for item in path.parent.iterdir()] == [NAME]
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_download_interrupted_half_way_resumes_in_the_next_command(archive: Archive, tmp_path: Path):
    half = len(CONTENT) // 2
    archive.break_after = [half]
    with pytest.raises(DataFormatError, match=f"stopped after {half} bytes.*goes on from there"):
        fetch(archive, tmp_path)
    assert (tmp_path / f"{NAME}.part").read_bytes() == CONTENT[:half]
    assert not (tmp_path / NAME).exists()
    assert fetch(archive, tmp_path).read_bytes() == CONTENT
    assert archive.asked == [None, f"bytes={half}-"]


def test_a_server_without_ranges_starts_over(archive: Archive, tmp_path: Path):
    (tmp_path / f"{NAME}.part").write_bytes(b"x" * 1000)
    archive.ranges = False
    assert fetch(archive, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_already_whole_needs_no_bytes(archive: Archive, tmp_path: Path):
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT)
    assert fetch(archive, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("start", [b"", b"not the start of this file"])
def test_a_wrong_checksum_removes_the_file_and_says_so(archive: Archive, tmp_path: Path, start: bytes):
    if start:
        (tmp_path / f"{NAME}.part").write_bytes(start)
    else:
        archive.content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with pytest.raises(DataFormatError, match="damaged and was removed: its MD5 is"):
        fetch(archive, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_checked_and_not_fetched(archive: Archive, tmp_path: Path):
    (tmp_path / NAME).write_bytes(CONTENT)
    assert fetch(archive, tmp_path) == tmp_path / NAME
    assert archive.asked == []
    (tmp_path / NAME).write_bytes(b"mine")
    with pytest.raises(DataFormatError, match="is not the published file"):
        fetch(archive, tmp_path)
    assert (tmp_path / NAME).read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["../evil.h5", "/etc/evil.h5", "a/b.h5", "..", ".hidden", "a\\b.h5", ""])
def test_names_that_leave_the_folder_are_refused(archive: Archive, tmp_path: Path, name: str):
    inside = tmp_path / "inside"
    with pytest.raises(ConfigError, match="not a plain file name"):
        fetch(archive, inside, entry=PublishedFile(name, "darcy2d", 7, ENTRY.md5, 0.001))
    with pytest.raises(ConfigError, match="no published file"):
        download(name, inside, address=archive.address)
    assert archive.asked == []
    assert list(tmp_path.iterdir()) == []


def test_a_misspelt_name_hears_the_nearest(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"did you mean '2D_rdb_NA_NA\.h5'"):
        download("2D_rbd_NA.h5", tmp_path)


def test_a_full_disk_is_noticed_before_the_first_byte(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(10**9, 10**9, 10**6))
    with pytest.raises(ConfigError, match=r"needs 0\.00315 GB.*has 0\.001 GB free"):
        fetch(archive, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [404, 503])
def test_a_refusal_is_told_with_its_number(archive: Archive, tmp_path: Path, status: int):
    archive.status = status
    with pytest.raises(DataFormatError, match=f"stopped after 0 bytes: HTTP Error {status}"):
        fetch(archive, tmp_path)
    assert len(archive.asked) == 1


def test_no_server_and_no_folder_are_told_in_one_line(tmp_path: Path):
    with pytest.raises(DataFormatError, match="stopped after 0 bytes"):
        download(NAME, tmp_path, address="http://127.0.0.1:9/")
    with pytest.raises(ConfigError, match="http or https"):
        download(NAME, tmp_path, address=f"file://{tmp_path}/")
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ConfigError, match="cannot make the folder"):
        download(NAME, tmp_path / "taken" / "below")


def test_the_table_is_what_the_archive_publishes():
    assert len(PDEBENCH) == 12
    assert len({entry.number for entry in PDEBENCH.values()}) == 12
    assert all(len(entry.md5) == 32 and int(entry.md5, 16) for entry in PDEBENCH.values())
    assert all(entry.name == name and entry.gigabytes > 1 for name, entry in PDEBENCH.items())
    assert SERVER.startswith("https://")
