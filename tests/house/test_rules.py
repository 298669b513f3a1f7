"""The rules of the house that linters do not know."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "spectrakan").rglob("*.py"))


def test_no_module_imports_the_top_level_package():
    for path in SOURCES:
        if path.parent.name == "spectrakan" and path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert all(name.name != "spectrakan" for name in node.names), path
            if isinstance(node, ast.ImportFrom):
                assert node.module != "spectrakan", f"{path} imports from the top-level package"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_one_idea(path: Path):
    assert len(path.read_text().splitlines()) <= 400
    assert path.stem not in {"utils", "helpers", "common", "misc", "base"}


def test_library_code_raises_and_never_asserts_or_prints():
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), path


def test_no_device_is_hard_coded():
    for path in SOURCES:
        text = path.read_text()
        assert ".cuda(" not in text, path
        if path.parent.name != "cli":
            assert "torch.manual_seed(" not in text, f"{path}: only commands act on global state"


def test_tracked_files_name_no_machine():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    place = str(ROOT.parent) + "/"
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".txt", ".cff", ""} and path.is_file():
            assert place not in path.read_text(errors="ignore"), name


def test_float64_is_asked_of_devices_that_know_it():
    """A `.double()` of what lies on Apple's GPU raises; `to_float64` takes such numbers to the CPU first."""
    for path in SOURCES:
        if path.parent.name in {"nn", "models", "training"}:
            assert ".double()" not in path.read_text(), f"{path}: use numerics.float64.to_float64"
