"""Code blocks of README and site: Python ones are run as doctests, commands are parsed by the program itself."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from spectrakan.cli.app import COMMANDS, command_named

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/how-to").glob("*.md"))]
PROGRAM = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:torchrun [^\n]*? -m )?spectrakan (.+)$")


def blocks(path: Path) -> Iterator[tuple[str, str]]:
    """Language and content of every fenced block."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_python_block_is_run(path: Path):
    for language, content in blocks(path):
        if language in {"python", "py"}:
            rest = re.sub(r"^(>>>|\.\.\.)( .*)?$", "", content, flags=re.MULTILINE)
            assert content.startswith(">>> "), f"a block that no doctest runs:\n{content}"
            assert "import " not in rest, f"code outside of a doctest:\n{content}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_exists_with_its_options(path: Path):
    for language, content in blocks(path):
        if language in {"", "bash", "sh"}:
            for line in content.replace("\\\n", " ").splitlines():
                if found := PROGRAM.match(line):
                    check_command(found[1])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_between_files_is_one_that_the_site_has(path: Path):
    """`make docs` refuses links to what the site does not hold; only links of README are of the repository."""
    home = ROOT if path.name == "README.md" else ROOT / "docs"
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((?!#|\w+:)([^)#\s]+)", text):
        target = Path(os.path.normpath(path.parent / link))
        assert target.exists(), f"no {link}"
        assert target.is_relative_to(home), f"outside of {home.name}: {link}; name the path as code"


def check_command(line: str) -> None:
    words = shlex.split(line, comments=True)
    if words[0].startswith("-"):
        assert words[0] in {"--help", "--version"}, line
        return
    assert words[0] in COMMANDS, line
    known = {option for part in command_named(words[0]).params for option in (*part.opts, *part.secondary_opts)}
    for word in words[1:]:
        if re.match(r"--?[a-z]", word):
            assert word.split("=")[0] in known | {"--help"}, line
