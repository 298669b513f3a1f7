"""Commands as a user starts them: real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import spectrakan


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # The package under test, also where another one is installed.
    environment = os.environ | {"PYTHONPATH": str(Path(spectrakan.__file__).parents[1])}
    command = [sys.executable, "-m", "spectrakan", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_generate_then_check(tmp_path: Path):
    made = run("generate", "droplet2d", "-n", "4", "--resolution", "8", "--frames", "5", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("droplet2d.h5: 4 samples of droplet2d")
    checked = run("check", "droplet2d.h5", folder=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "distinct     4 of 4 trajectories" in checked.stdout


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path):
    failed = run("check", "nowhere.h5", folder=tmp_path)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.startswith("error: cannot read")
    assert len(failed.stderr.splitlines()) == 1


def test_a_closed_folder_is_one_line_too(tmp_path: Path):
    (tmp_path / "taken").write_text("a file where a folder should be")
    failed = run("generate", "darcy2d", "-n", "1", "--resolution", "8", "-o", "taken/x.h5", folder=tmp_path)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in failed.stderr
