"""`train --dry-run`: the numbers it prints are those of the file, or of what would be made."""

from __future__ import annotations

import re

import numpy as np
import pytest

from spectrakan.cli.estimate import print_estimate
from spectrakan.data.generate import generate
from spectrakan.data.prepare import prepare
from spectrakan.data.write import write_dataset
from spectrakan.errors import ConfigError
from spectrakan.training import resolve
from spectrakan.training.assemble import training_windows

SMALL = ["model.name=fno", "model.width=4", "model.num_layers=1", "model.num_modes=3", "training.epochs=3"]


def told(capsys, task, *changes):
    print_estimate(resolve(task, [*SMALL, *changes]))
    lines = capsys.readouterr().out.splitlines()
    return {line.split()[0]: line for line in lines}


def test_samples_frames_and_cells_are_the_file_s(tmp_path, capsys):
    made = generate("diffusion_reaction1d", 30, 16, frames=21, params={"nu": (0.4, 0.6)}, dtype=np.float32)
    path = write_dataset(tmp_path / "own.h5", made)
    window = ["data.history=2", "training.mode=autoregressive", "training.horizon=3", "training.batch_size=8"]
    choices = [f"data.path={path}", *window]
    lines = told(capsys, "diffusion_reaction1d", *choices)
    assert "(8, 2, 16, 1)" in lines["input"]
    assert "(8, 3, 16, 1)" in lines["target"]
    # 24 of 30 samples train, each with 21 - 2 - 3 + 1 = 17 windows; 51 steps an epoch.
    assert "30 samples, 0 MB of fields, 408 windows" in lines["data"]
    assert lines["time"].split()[1] == "153"
    resolved = resolve("diffusion_reaction1d", [*SMALL, *choices]).config
    assert len(training_windows(resolved, prepare(resolved.task, resolved.data))) == 408
    strided = told(capsys, "diffusion_reaction1d", *choices, "data.num_samples=20", "data.resolution=8")
    assert "20 samples" in strided["data"]
    assert "(8, 2, 8, 1)" in strided["input"]


def test_generated_samples_are_counted_without_making_them(capsys):
    lines = told(capsys, "darcy2d", "data.num_samples=50", "data.resolution=16", "training.batch_size=7")
    assert "(7, 1, 16, 16, 1)" in lines["input"]
    assert "50 samples, 0 MB of fields, 40 windows" in lines["data"]
    assert lines["time"].split()[1] == str(3 * 6)
    assert re.search(r"fno, \d+ parameters", lines["model"])


def test_what_training_would_refuse_is_refused(tmp_path, capsys):
    path = write_dataset(tmp_path / "own.h5", generate("darcy2d", 10, 8, dtype=np.float32))
    with pytest.raises(ConfigError, match="holds darcy2d, not droplet2d"):
        told(capsys, "droplet2d", f"data.path={path}")
    with pytest.raises(ConfigError, match="need 105 frames, the trajectories have 21"):
        told(capsys, "diffusion_reaction1d", "training.mode=autoregressive", "training.horizon=100", "data.frames=21")
