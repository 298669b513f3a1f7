"""Fetch a published file: resumed where it stopped, checked by its MD5, refused where there is no room."""

from __future__ import annotations

import hashlib
import http.client
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from spectrakan.data.progress import Progress
from spectrakan.data.published import PDEBENCH, SERVER, PublishedFile
from spectrakan.data.space import require_space
from spectrakan.errors import ConfigError, DataFormatError, nearest

BLOCK = 2**20
TIMEOUT_SECONDS = 60.0
ATTEMPTS = 4
"""Times that a broken connection is taken up again before giving up."""


@dataclass(frozen=True)
class Server:
    """Where files come from, and how patiently."""

    address: str = SERVER
    attempts: int = ATTEMPTS
    pause_seconds: float = 2.0
    """Wait before the second attempt; it doubles each time."""


def download(
    name: str,
    folder: Path,
    *,
    progress: Progress | None = None,
    server: Server | None = None,
    catalog: Mapping[str, PublishedFile] = PDEBENCH,
) -> Path:
    """Put the published file of that name into `folder` and return its path.

    Bytes are kept in `NAME.part` until the MD5 is right, so an interrupted download goes on where it stopped
    and a file under its own name is always whole. `progress` hears (bytes there, bytes in all).
    """
    entry = _entry(name, catalog)
    target, part = folder / entry.name, folder / f"{entry.name}.part"
    if target.is_file():
        if (found := _md5(target, progress)) != entry.md5:
            raise DataFormatError(
                f"'{target}' is there but is not the published file: its MD5 is {found}, published is "
                f"{entry.md5}; move it away and start again"
            )
        return target
    _make(folder)
    _fetch(entry, part, Server() if server is None else server, progress)
    if (found := _md5(part)) != entry.md5:
        part.unlink(missing_ok=True)
        raise DataFormatError(
            f"{entry.name} arrived damaged and was removed: its MD5 is {found}, published is {entry.md5}; "
            "download it again"
        )
    part.replace(target)
    return target


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(f"cannot make the folder '{folder}': {problem.strerror}") from None


def _entry(name: str, catalog: Mapping[str, PublishedFile]) -> PublishedFile:
    if name not in catalog:
        raise ConfigError(f"no published file '{name}'{nearest(name, catalog)}")
    entry = catalog[name]
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*", entry.name):
        raise ConfigError(f"'{entry.name}' is not a plain file name; it could leave the folder, so it is refused")
    return entry


def _fetch(entry: PublishedFile, part: Path, server: Server, progress: Progress | None) -> None:
    """Make `part` complete, taking a broken connection up again."""
    for attempt in range(server.attempts):
        if attempt:
            time.sleep(server.pause_seconds * 2 ** (attempt - 1))
        try:
            return _fetch_rest(entry, part, server.address, progress)
        except (urllib.error.URLError, http.client.HTTPException, OSError) as problem:
            if isinstance(problem, urllib.error.HTTPError):
                problem.close()
            if _hopeless(problem) or attempt == server.attempts - 1:
                there = part.stat().st_size if part.exists() else 0
                raise DataFormatError(
                    f"the download of {entry.name} stopped after {there} bytes: {problem}; "
                    "the same command goes on from there"
                ) from None
    return None


def _hopeless(problem: Exception) -> bool:
    """Whether trying again cannot help: the server refused, or this disk did."""
    if isinstance(problem, urllib.error.HTTPError):
        return problem.code < 500 and problem.code not in {408, 429}
    network = urllib.error.URLError | http.client.HTTPException | ConnectionError | TimeoutError
    return not isinstance(problem, network)


def _fetch_rest(entry: PublishedFile, part: Path, address: str, progress: Progress | None) -> None:
    """Ask for the bytes that are not there yet and append them."""
    there = part.stat().st_size if part.exists() else 0
    try:
        answer = _ask(f"{address}{entry.number}", there)
    except urllib.error.HTTPError as refusal:
        if refusal.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        # Nothing is left beyond what is there: it is whole, or the checksum will say that it is not.
        refusal.close()
        return
    with answer:
        begin, total = _range(answer, there)
        rest = total - begin if total else int(entry.gigabytes * 1e9)
        require_space(part.parent, rest, f"the rest of {entry.name}")
        with part.open("r+b" if begin else "wb") as file:
            file.seek(begin)
            _copy(answer, file, total, progress)
    if total and part.stat().st_size < total:
        raise http.client.IncompleteRead(b"", total - part.stat().st_size)


def _ask(url: str, there: int) -> http.client.HTTPResponse:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ConfigError(f"files are fetched by http or https, got '{url}'")
    request = urllib.request.Request(url, headers={"User-Agent": "spectrakan"})  # noqa: S310 - checked above
    if there:
        request.add_header("Range", f"bytes={there}-")
    answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310
    return answer


def _range(answer: http.client.HTTPResponse, there: int) -> tuple[int, int]:
    """First byte of the answer, and size of the whole file (0 when the server does not say)."""
    length = answer.length or 0
    if answer.status != http.client.PARTIAL_CONTENT:
        return 0, length
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
    if found is None or int(found[1]) > there:
        raise DataFormatError(
            f"the server answered with the range {answer.headers.get('Content-Range')!r} "
            f"when asked to go on at byte {there}; delete the .part file and start again"
        )
    begin = int(found[1])
    return begin, begin + length if found[2] == "*" else int(found[2])


def _copy(answer: http.client.HTTPResponse, file: IO[bytes], total: int, progress: Progress | None) -> None:
    while block := answer.read(BLOCK):
        file.write(block)
        if progress is not None:
            progress(file.tell(), max(total, file.tell()))
    file.truncate()


def _md5(path: Path, progress: Progress | None = None) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    size = path.stat().st_size if path.exists() else 0
    if not size:
        return digest.hexdigest()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            if progress is not None:
                progress(file.tell(), size)
    return digest.hexdigest()
