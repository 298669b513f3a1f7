"""Rules of the code base that linters do not check."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from spectrakan.cli.app import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "spectrakan").rglob("*.py"))
CAMPAIGN = sorted((ROOT / "experiments").rglob("*.py"))
MOST_ARGUMENTS = 8
MANY_ARGUMENTS = {"from_arrays", "reproduce", *COMMANDS}
"""Functions whose arguments are options that a user names: the commands, the campaign's command, `from_arrays`."""


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_module_imports_the_top_level_package():
    for path in SOURCES:
        if path.parent.name == "spectrakan" and path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert all(name.name != "spectrakan" for name in node.names), path
            if isinstance(node, ast.ImportFrom):
                assert node.module != "spectrakan", f"{path} imports from the top-level package"


@pytest.mark.parametrize("path", [*SOURCES, *CAMPAIGN], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_one_idea(path: Path):
    assert len(path.read_text().splitlines()) <= 400
    assert path.stem not in {"utils", "helpers", "common", "misc", "base"}


@pytest.mark.parametrize("path", [*SOURCES, *CAMPAIGN], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_function_has_many_arguments(path: Path):
    for node in functions(path):
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len([name for name in names if name not in ("self", "cls")])
        command = path.parent.name in ("cli", "experiments") or node.name == "from_arrays"
        allowed = node.name in MANY_ARGUMENTS and command
        assert count <= MOST_ARGUMENTS or allowed, f"{path}: {node.name} has {count} arguments"


def test_library_code_raises_and_never_asserts():
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree)), path


def test_no_device_is_hard_coded():
    for path in SOURCES:
        text = path.read_text()
        assert ".cuda(" not in text, path
        if path.parent.name != "cli":
            assert "torch.manual_seed(" not in text, f"{path}: only commands change global state"


def test_tracked_files_name_no_machine():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    folder = str(ROOT.parent) + "/"
    suffixes = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".txt", ".cff", ".ipynb", ""}
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if path.suffix in suffixes and path.is_file():
            assert folder not in path.read_text(errors="ignore"), name


def test_float64_is_computed_on_devices_that_support_it():
    """A `.double()` of a tensor on Apple's GPU raises; `to_float64` moves it to the CPU first."""
    for path in SOURCES:
        if path.parent.name in {"nn", "models", "training"}:
            assert ".double()" not in path.read_text(), f"{path}: use numerics.quadrature.to_float64"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_has_each_docstring_s_first_line(name: str):
    function = getattr(import_module(f"spectrakan.cli.{name}"), name)
    assert function.__doc__.strip().splitlines()[0] == COMMANDS[name]


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("train", "--help")], ids=" ".join)
def test_help_imports_no_torch(words: tuple[str, ...]):
    """`--help` answers within a fraction of a second because it imports only the table of commands."""
    program = (
        "import sys\n"
        f"sys.argv = ['spectrakan', *{words!r}]\n"
        "from spectrakan.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "print('loaded:', *sorted({'torch', 'scipy', 'matplotlib'} & sys.modules.keys()), file=sys.stderr)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].strip() == "loaded:"
    assert "train" in done.stdout or "spectrakan" in done.stdout
