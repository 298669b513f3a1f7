"""The scripts and the notebook of `examples/` run as a user runs them and learn more than persistence does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
MOST_LINES = 25
LAST_FRAME = "print(sk.train({data}, model='persistence', overrides={overrides}))"
"""Appended to a script: the error of the trivial baseline on the script's own data."""
TRIVIAL = {
    "own_arrays": LAST_FRAME.format(data="data=data", overrides=["data.history=1"]),
    "own_equation": LAST_FRAME.format(data="'advection'", overrides=["data.num_samples=50"]),
    "own_module": LAST_FRAME.format(data="data=data", overrides=[]),
    "own_netcdf": LAST_FRAME.format(data="data=data", overrides=["data.history=2"]).replace(
        "overrides=", "overrides=split + "
    ),
    "own_loop": "mean = targets[train].mean(0)\n"
    "print(f'mean field, RMSE {(mean - targets[test]).square().mean().sqrt():.4f}')",
}
LARGEST_SHARE = {"own_arrays": 0.1, "own_equation": 0.1, "own_module": 0.8, "own_netcdf": 0.1, "own_loop": 0.5}
"""Error of the script's models over that of persistence (own_loop, which is steady: of the mean field)."""


def run(script: Path, folder: Path, after: str = "") -> str:
    """What a script prints, run from its file in a process of its own in an empty folder, then `after`."""
    program = (
        "import runpy, sys\n"
        f"sys.argv = [{str(script)!r}]\n"
        f"globals().update(runpy.run_path({str(script)!r}, run_name='__main__'))\n{after}\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_script_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == TRIVIAL.keys()


@pytest.mark.parametrize("name", sorted(TRIVIAL))
def test_a_script_is_short(name: str):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", sorted(TRIVIAL))
def test_a_script_learns(name: str, tmp_path: Path):
    told = run(EXAMPLES / f"{name}.py", tmp_path, TRIVIAL[name])
    *learned, trivial = (float(number) for number in re.findall(r"(?:test relative L2|RMSE) ([\d.e-]+)", told))
    assert learned
    assert trivial > 0
    assert max(learned) < LARGEST_SHARE[name] * trivial, told


def executed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """What a notebook shows when it is run in an empty folder, and how many figures."""
    import nbclient
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "keep the notebook without outputs"
    nbclient.NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = "\n".join(str(output.get("data", output.get("text", ""))) for output in outputs)
    assert "Warning" not in shown, shown
    return shown, sum("image/png" in output.get("data", {}) for output in outputs)


def number(pattern: str, shown: str) -> float:
    found = re.search(pattern, shown)
    assert found is not None, (pattern, shown[-3000:])
    return float(found[1])


def test_the_first_notebook_runs_and_shows_data_scores_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shown, figures = executed("first_model", tmp_path, monkeypatch)
    assert "Trajectories <b>waves</b>" in shown, "a set shows its table"
    assert figures == 3, "figures display themselves"
    assert re.search(r"<progress value='(\d+)' max='\1'.*epoch 15", shown), "training shows its progress to the end"
    assert number(r"relative L2 ([\d.]+)", shown) < 0.2 * number(r"persistence ([\d.]+)", shown)


@pytest.mark.slow
def test_darcy_from_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shown, figures = executed("darcy_from_zero", tmp_path, monkeypatch)
    trivial = number(r"mean field ([\d.]+)", shown)
    assert number(r"spectrakan ([\d.]+)", shown) < 0.7 * trivial
    assert number(r"fno ([\d.]+)", shown) < trivial
    assert number(r"tested at 64: ([\d.]+)", shown) < 0.8 * trivial
    assert figures >= 1


@pytest.mark.slow
def test_data_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shown, _ = executed("own_data", tmp_path, monkeypatch)
    assert "have no known meaning" in shown, "the file is refused without a mapping"
    assert number(r"relative L2 ([\d.]+)", shown) < 0.3 * number(r"persistence ([\d.]+)", shown)
    assert "Trajectories(ring: 1 samples, 10 frames of heat on 48 cells, periodic" in shown


@pytest.mark.slow
def test_what_the_token_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shown, figures = executed("what_the_token_sees", tmp_path, monkeypatch)
    assert number(r"nu: R2 ([-\d.]+)", shown) > 0.8
    assert number(r"amplitude: R2 ([-\d.]+)", shown) > 0.8
    assert number(r"nu: R2 [-\d.]+, of noise ([-\d.]+)", shown) < 0.5
    assert number(r"weights: ([\d.]+)", shown) == pytest.approx(1, abs=1e-4)
    bound, reached = (number(rf"token: at most {there}", shown) for there in (r"([\d.]+)", r"\S+ .*?reach ([\d.]+)"))
    assert 0 < reached <= bound < 20 * reached
    assert figures >= 1
