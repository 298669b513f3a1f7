"""Fetch a published PDEBench file: resumed where it stopped, checked by its MD5, refused where the disk is full.

Data set DOI 10.18419/darus-2986.
"""

import csv
import hashlib
import http.client
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from spectrakan.errors import ConfigError, DataFormatError, nearest
from spectrakan.fields import Progress

SERVER = "https://darus.uni-stuttgart.de/api/access/datafile/"
"""Address to which a file's number is appended."""
BLOCK = 2**20
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class PublishedFile:
    """A file of a public archive."""

    name: str
    task: str
    number: int
    """Number of the file in the archive."""
    md5: str
    gigabytes: float
    """Size in 10^9 bytes, rounded; the server sends the exact one."""


with (resources.files("spectrakan.data") / "pdebench.csv").open(encoding="utf-8") as _rows:
    PDEBENCH: dict[str, PublishedFile] = {
        row["name"]: PublishedFile(row["name"], row["task"], int(row["number"]), row["md5"], float(row["gigabytes"]))
        for row in csv.DictReader(_rows)
    }
"""The published files by name."""


def download(
    name: str,
    folder: Path,
    *,
    progress: Progress | None = None,
    address: str = SERVER,
    catalog: Mapping[str, PublishedFile] = PDEBENCH,
) -> Path:
    """Put the published file of that name into `folder` and return its path.

    Bytes are kept in `NAME.part` until the MD5 is right, so an interrupted download goes on where it stopped
    and a file under its own name is always whole. `progress` is called with (bytes present, bytes in all).
    """
    if name not in catalog:
        raise ConfigError(f"no published file '{name}'{nearest(name, catalog)}")
    entry = catalog[name]
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*", entry.name):
        raise ConfigError(f"'{entry.name}' is not a plain file name; it could leave the folder, so it is refused")
    target, part = folder / entry.name, folder / f"{entry.name}.part"
    if target.is_file():
        if (found := _md5(target)) != entry.md5:
            raise DataFormatError(
                f"'{target}' is there but is not the published file: its MD5 is {found}, published is "
                f"{entry.md5}; move it away and start again"
            )
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ConfigError(f"cannot make the folder '{folder}': {problem.strerror}") from None
    try:
        _fetch_rest(entry, part, address, progress)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as problem:
        if isinstance(problem, urllib.error.HTTPError):
            problem.close()
        there = part.stat().st_size if part.exists() else 0
        raise DataFormatError(
            f"the download of {entry.name} stopped after {there} bytes: {problem}; "
            "the same command goes on from there"
        ) from None
    if (found := _md5(part)) != entry.md5:
        part.unlink(missing_ok=True)
        raise DataFormatError(
            f"{entry.name} arrived damaged and was removed: its MD5 is {found}, published is {entry.md5}; "
            "download it again"
        )
    part.replace(target)
    return target


def _fetch_rest(entry: PublishedFile, part: Path, address: str, progress: Progress | None) -> None:
    """Ask for the bytes that are not there yet and append them."""
    there, url = part.stat().st_size if part.exists() else 0, f"{address}{entry.number}"
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ConfigError(f"files are fetched by http or https, got '{url}'")
    headers = {"User-Agent": "spectrakan"} | ({"Range": f"bytes={there}-"} if there else {})
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked above
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310
    except urllib.error.HTTPError as refusal:
        if refusal.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        # No bytes are left to fetch: the file is whole, or its checksum is wrong.
        refusal.close()
        return
    with answer:
        stated, partial = answer.headers.get("Content-Range", ""), answer.status == http.client.PARTIAL_CONTENT
        if partial and not stated.startswith(f"bytes {there}-"):
            raise DataFormatError(
                f"the server answered with the range {stated!r} when asked to go on at byte {there}; "
                "delete the .part file and start again"
            )
        begin = there if partial else 0
        total = begin + answer.length if answer.length else 0
        require_space(part.parent, answer.length or int(entry.gigabytes * 1e9), f"the rest of {entry.name}")
        with part.open("r+b" if begin else "wb") as file:
            file.seek(begin)
            while block := answer.read(BLOCK):
                file.write(block)
                if progress is not None:
                    progress(file.tell(), max(total, file.tell()))
            file.truncate()
    if total and part.stat().st_size < total:
        raise http.client.IncompleteRead(b"", total - part.stat().st_size)


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def require_space(folder: Path, needed: int, what: str) -> None:
    """Refuse to begin when the disk of `folder` (or of its nearest parent that exists) lacks `needed` bytes."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if needed > free:
        raise ConfigError(
            f"{what} needs {needed / 1e9:.3g} GB, '{folder}' has {free / 1e9:.3g} GB free; "
            "choose another folder or make room"
        )
