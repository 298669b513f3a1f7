"""`spectrakan export` on a run: the file agrees with the run's best weights, and says what it takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy as np, torch
import spectrakan as sk
from spectrakan.cli import main
import sys

t, x, start = np.arange(6) / 20, np.arange(16) / 16, np.random.default_rng(0).random((12, 1, 1))
u = 280 + np.sin(2 * np.pi * (x - t[:, None] + start))[..., None]
data = sk.Trajectories.from_arrays(u, fields=("u",), times=t, boundary=("periodic",), name="waves")
run = sk.train(data=data, overrides=["training.epochs=1", "model.width=4", "model.num_layers=1"], output="run")
sys.argv = ["spectrakan", "export", "run", "-o", "waves.pt2"]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
frames = torch.tensor(u[:3, :run.model.signature.history], dtype=torch.float32)
found = torch.export.load("waves.pt2").module()(x=frames)
assert (found - sk.from_pretrained("run")(frames)).abs().max() < 1e-5 * 280
"""


def test_a_run_becomes_a_file_that_agrees_with_its_best_weights(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "waves.pt2: torch-export" in done.stdout
    assert "any batch, any number of equal cells" in done.stdout


@pytest.mark.parametrize(("kind", "words"), [("onxx", "did you mean 'onnx'?"), ("onnx", "found nothing")])
def test_mistakes_end_in_one_line(tmp_path: Path, kind: str, words: str):
    done = subprocess.run(
        [sys.executable, "-m", "spectrakan", "export", str(tmp_path / "none"), "--format", kind],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []
