"""Fields cut among processes against whole ones: outputs, gradients, statistics, whole runs, files and bytes."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from run_process import Launcher
from safetensors.torch import load_file, save_file
from space_process import CASES, results

from spectrakan.checkpoint import load_checkpoint
from spectrakan.cli.questions import Asked, answer
from spectrakan.data import load_dataset
from spectrakan.data.files import write_dataset
from spectrakan.data.lazy import Part
from spectrakan.data.prepare import DataSettings, prepare
from spectrakan.data.problems import Problem
from spectrakan.errors import ConfigError
from spectrakan.fields import FieldSpec, GridPart, OperatorSignature, SpaceGroup, Trajectories
from spectrakan.models import build_model
from spectrakan.runs import read_log, read_record
from spectrakan.training import train as train_here

SITE = {**os.environ, "OMP_NUM_THREADS": "1"}
SCRIPT = Path(__file__).parents[1] / "space_process.py"
RUN = [
    "data.history=2",
    "model.width=6",
    "model.num_layers=2",
    "model.num_modes=3",
    "model.ema_decay=0.9",
    "model.range_margin=0.1",
    "runtime.log_steps=1",
    "runtime.precision=float64",
    "training.epochs=6",
    "training.mode=autoregressive",
    "training.horizon=2",
]


def started(processes: int, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += map(str, words)
    return subprocess.Popen(command, env=SITE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def train(processes: int, *words: object) -> None:
    process = started(processes, "-m", "spectrakan", "train", *words)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said[-3000:]


def waves(folder: Path) -> Path:
    """Twenty trajectories of five frames on 17 x 8 cells, in a file."""
    rng = np.random.default_rng(0)
    x, y, t = np.arange(17) / 17, np.arange(8) / 8, np.arange(5) / 10
    phase = rng.random((20, 4, 1, 1, 1))
    values = 2 + sum(
        (1 + k)
        * np.sin(2 * np.pi * ((1 + k % 2) * x[:, None] - t[:, None, None] + phase[:, k]))
        * np.cos(2 * np.pi * (y * (k // 2) + phase[:, k]))
        for k in range(4)
    )
    data = Trajectories.from_arrays(values[..., None], ("u",), boundary=("periodic",) * 2, times=t, name="waves")
    write_dataset(folder / "waves.h5", data)
    return folder / "waves.h5"


def apart(one: Path, other: Path) -> float:
    left, right = (dict(load_checkpoint(folder / "checkpoints" / "last").weights) for folder in (one, other))
    return max(float((left[key].double() - right[key].double()).abs().max()) for key in left)


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::spectrakan.errors.UnfittedWarning")
def test_cut_fields_give_the_outputs_and_gradients_of_whole_ones(processes, tmp_path):
    whole = results()
    save_file(whole, tmp_path / "whole.safetensors")
    process = started(processes, SCRIPT, tmp_path / "cut.safetensors", tmp_path / "whole.safetensors")
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said[-3000:]
    cut = load_file(tmp_path / "cut.safetensors")
    assert {key for key in cut if "bytes" not in key} == whole.keys()
    for key, expected in whole.items():
        # Least squares on splines with few samples amplify rounding; everything else is exact to it.
        allowed = 1e-5 if "fitted global_token" in key else 1e-10
        size = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
        assert torch.allclose(cut[key], expected, rtol=0, atol=allowed * size), key
    for case in {key.split(":")[0] for key in whole}:
        gradients = [value for key, value in whole.items() if key.startswith(f"{case}: gradient")]
        assert max(float(each.abs().max()) for each in gradients) > 1e-4, "gradients must have a size to compare"
    for name in ("1d", "2d", "fno 1d", "fno 2d", "ffno 2d", "ffno 3d"):
        assert int(cut[f"{name}, equal and evolving: bytes"]) == exchanged_bytes(name), name


def exchanged_bytes(name: str, batch: int = 3, fields: int = 2, history: int = 2) -> int:
    """The formula of docs/how-to/scale.md for a step of one frame in float64, where all modes are resolved."""
    model, settings, cells, boundary = CASES[name]
    width, modes, layers = settings["width"], settings["num_modes"], settings["num_layers"]
    axial, joint = 2 * modes * math.prod(cells[1:]), 2 * (2 * modes) ** (len(cells) - 1) * modes
    numbers = 2 * layers * width * (joint if model == "fno" else axial)
    if model == "spectrakan":
        numbers += history * fields + 3 + 2 * width
    most = 48 if len(cells) == 1 else 32
    limits = [2 * ((n + 1) // 2) if kind == "periodic" else n for n, kind in zip(cells, boundary, strict=True)]
    numbers += 2 * fields * math.prod(min(most, limit) for limit in limits)
    return 8 * batch * (numbers + 3 * fields)


@pytest.mark.slow
def test_two_by_two_processes_train_as_one_and_resume_on_another_layout(tmp_path):
    common = ["--data", waves(tmp_path), *RUN]
    train(4, *common, "training.batch_size=4", "runtime.space_parallel=2", "--output", tmp_path / "four")
    train(1, *common, "training.batch_size=8", "--output", tmp_path / "one")
    assert 0 <= apart(tmp_path / "four", tmp_path / "one") < 1e-9
    four, one = (read_record(tmp_path / name / "record.json") for name in ("four", "one"))
    assert four["provenance"]["data_sha256"] == one["provenance"]["data_sha256"]
    assert four["resolution"] == one["resolution"] == [17, 8]
    for key, value in one["metrics"].items():
        assert four["metrics"][key] == (None if value is None else pytest.approx(value, rel=1e-9)), key
    logs = [read_log(tmp_path / name / "log.jsonl") for name in ("four", "one")]
    found, expected = ([line["validation"] for line in log if line.get("validation")] for log in logs)
    assert found == pytest.approx(expected, rel=1e-9)
    assert len(found) == 6
    cut = [*common, "training.batch_size=8", "runtime.space_parallel=2", "runtime.checkpoint_steps=1"]
    process = started(2, "-m", "spectrakan", "train", *cut, "--output", tmp_path / "killed")
    while not (log := tmp_path / "killed" / "log.jsonl").is_file() or len(read_log(log)) < 3:
        assert process.poll() is None, process.communicate()[0][-3000:]
        time.sleep(0.05)
    os.kill(worker(process.pid, rank=1), signal.SIGKILL)
    begin = time.monotonic()
    process.communicate(timeout=120)
    assert process.returncode != 0
    assert time.monotonic() - begin < 20
    stopped_at = load_checkpoint(tmp_path / "killed" / "checkpoints" / "last").position["step"]
    assert 0 < stopped_at < load_checkpoint(tmp_path / "one" / "checkpoints" / "last").position["step"]
    train(1, "--resume", tmp_path / "killed")
    assert 0 <= apart(tmp_path / "killed", tmp_path / "one") < 1e-9


@pytest.mark.parametrize("steady", [False, True])
def test_cut_fields_are_scored_and_predicted_as_whole_ones(steady, tmp_path):
    path = waves(tmp_path)
    if steady:
        held = load_dataset(path)
        data = Trajectories.from_arrays(held.values[:, 1:2], ("v",), inputs=held.values[:, :1], name="steady")
        write_dataset(path, data)
    small = [each for each in RUN if each.startswith("model")]
    train_here(data=path, overrides=[*small[:3], "training.epochs=1"], output=tmp_path / "run")
    launcher = Launcher(tmp_path)
    scores = {}
    for name, parts in (("whole", 1), ("cut", 2), ("shared and cut", 2)):
        cut, processes = ["--space-parallel", str(parts)], 4 if " " in name else parts
        for words in (["evaluate", "run", "--json"], ["predict", "run", "waves.h5", "-o", f"{name}.h5"]):
            group = launcher.start_group(*words, *cut, processes=processes)
            assert [process.wait() for process in group] == [0] * processes, group[-1].errors
            assert all(process.out.read_text() == "" for process in group[1:])
            scores.setdefault(name, group[0].out.read_text())
        scores[name] = json.loads(scores[name])
    launcher.close()
    whole, expected = scores["whole"], load_dataset(tmp_path / "whole.h5")
    assert len(whole["metrics"]) == 9
    for name in ("cut", "shared and cut"):
        for key, value in whole["metrics"].items():
            bar = None if value is None else pytest.approx(value, rel=1e-4, abs=1e-6)
            assert scores[name]["metrics"][key] == bar, key
        found = load_dataset(tmp_path / f"{name}.h5")
        assert found.values.shape == expected.values.shape == (20, 1 if steady else 4, 17, 8, 1)
        np.testing.assert_allclose(found.values[:], expected.values[:], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found.times, expected.times)


def test_cut_fields_answer_no_further_questions(tmp_path):
    with pytest.raises(ConfigError, match="space-parallel scores fields on their own cells"):
        answer(tmp_path, None, None, Asked(resolutions=(8,), space_parallel=2), device="cpu", as_json=True)


def worker(parent: int, rank: int) -> int:
    """The process of that rank among the children of torchrun."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            mother = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            environment = (place / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mother == parent and f"RANK={rank}".encode() in environment:
            return int(place.name)
    raise AssertionError("torchrun has no such child")


class Third(SpaceGroup):
    """The second of three parts, without processes."""

    rank, size = 1, 3


def test_a_process_reads_only_its_own_part_of_a_file(tmp_path, monkeypatch):
    path, read = waves(tmp_path), []
    plain = Part.read
    monkeypatch.setattr(Part, "read", lambda part, ranges: read.append(ranges[2]) or plain(part, ranges))
    problem = Problem("waves", (FieldSpec("u"),), (17, 8), frames=5)
    made = prepare(problem, DataSettings(path=str(path)), space=Third())
    assert {cell for cells in read for cell in cells} == set(range(6, 12))
    assert made.trajectories.values.shape == (20, 5, 6, 8, 1)
    window = made.windows("train").gather([0])
    assert isinstance(window.grid, GridPart)
    assert window.grid.coordinates[0].tolist() == window.grid.whole.coordinates[0][6:12].tolist()
    assert float(window.grid.volumes().sum()) == pytest.approx(6 / 17)


def test_models_that_cannot_be_cut_refuse_parts():
    data = Trajectories.from_arrays(np.random.default_rng(0).random((2, 2, 12, 1)), ("u",)).cut(Third())
    model = build_model("local_fno", OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1))
    with pytest.raises(ConfigError, match="local_fno cannot be cut"):
        model.forward_normalized(torch.zeros(1, 1, 4, 1), None, data.grid)
