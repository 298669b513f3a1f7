"""Open files are kept, but few, and only as long as they are the same files."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from spectrakan.data.container import MOST_OPEN, opened, released, stamp_of
from spectrakan.errors import DataFormatError


def open_plain(path: Path) -> object:
    return path.open("rb")


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    made = [tmp_path / f"{number}.bin" for number in range(MOST_OPEN + 4)]
    for path in made:
        path.write_bytes(path.name.encode())
    return made


def test_a_file_is_opened_once_and_the_oldest_is_closed(paths: list[Path]):
    with ExitStack() as stack:
        for path in paths:
            stack.enter_context(released(path))
        handles = [opened(path, stamp_of(path), open_plain) for path in paths]
        assert opened(paths[-1], stamp_of(paths[-1]), open_plain) is handles[-1]
        assert [handle.closed for handle in handles] == [True] * 4 + [False] * MOST_OPEN
    assert all(handle.closed for handle in handles)


def test_a_block_closes_what_it_opened_and_nothing_else(paths: list[Path]):
    path = paths[0]
    with released(path):
        kept = opened(path, stamp_of(path), open_plain)
        with released(path):
            assert opened(path, stamp_of(path), open_plain) is kept
        assert not kept.closed, "it was open before the inner block"
    assert kept.closed


def test_a_changed_file_is_not_opened(paths: list[Path]):
    stamp = stamp_of(paths[0])
    paths[0].write_bytes(b"something longer than before")
    with pytest.raises(DataFormatError, match="was changed"):
        opened(paths[0], stamp, open_plain)
    paths[0].unlink()
    with pytest.raises(DataFormatError, match="No such file"):
        opened(paths[0], stamp, open_plain)
