"""Two processes under torchrun against one with the doubled batch, and what happens when one of them dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from spectrakan.checkpoint import load_checkpoint
from spectrakan.runs import read_log, read_record

TINY = [
    "darcy2d",
    "model.width=4",
    "model.num_layers=1",
    "model.num_modes=3",
    "model.coarse_num_layers=1",
    "model.coarse_num_modes=2",
    "data.num_samples=20",
    "data.resolution=8",
    "model.ema_decay=0.9",
    "runtime.log_steps=1",
]
SITE = {**os.environ, "OMP_NUM_THREADS": "1"}


def torchrun(*arguments: object, restarts: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["--max-restarts", str(restarts), "-m", "spectrakan", "train"]
    command += [str(argument) for argument in arguments]
    return subprocess.Popen(command, env=SITE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str], seconds: float = 240.0) -> tuple[int, str]:
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, said


def alone(*arguments: object) -> None:
    command = [sys.executable, "-m", "spectrakan", "train", *map(str, arguments)]
    subprocess.run(command, env=SITE, check=True, capture_output=True, timeout=240)


def last(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_checkpoint(folder / "checkpoints" / "last").weights)


def apart(one: Path, other: Path) -> float:
    left, right = last(one), last(other)
    return max(float((left[key].double() - right[key].double()).abs().max()) for key in left)


def test_two_processes_equal_one_with_the_doubled_batch(tmp_path):
    # 16 training samples, global batch 4: 4 steps an epoch, 52 steps in all.
    common = [*TINY, "runtime.precision=float64", "training.epochs=13"]
    code, said = finish(torchrun(*common, "training.batch_size=2", "--output", tmp_path / "two"))
    assert code == 0, said[-3000:]
    alone(*common, "training.batch_size=4", "--output", tmp_path / "one")
    assert load_checkpoint(tmp_path / "two" / "checkpoints" / "last").position["step"] == 52
    assert apart(tmp_path / "two", tmp_path / "one") < 1e-9
    assert_same_scores_and_losses(tmp_path / "two", tmp_path / "one", 1e-9)


def assert_same_scores_and_losses(left: Path, right: Path, allowed: float) -> None:
    """Processes add up scores and losses in another order than one does, so these agree to rounding."""
    two, one = (read_record(folder / "record.json") for folder in (left, right))
    assert two["provenance"]["processes"] == 2
    assert two["metrics"]["relative_l2"] == pytest.approx(one["metrics"]["relative_l2"], abs=allowed)
    losses = [[line["loss"] for line in read_log(folder / "log.jsonl")] for folder in (left, right)]
    assert losses[0] == pytest.approx(losses[1], rel=allowed)


@pytest.mark.slow
def test_batch_statistics_are_those_of_all_processes(tmp_path):
    shape = ["darcy2d", "data.num_samples=20", "data.resolution=16", "model.name=unet", "training.epochs=2"]
    common = [*shape, "runtime.precision=float64"]
    code, said = finish(torchrun(*common, "training.batch_size=2", "--output", tmp_path / "two"))
    assert code == 0, said[-3000:]
    alone(*common, "training.batch_size=4", "--output", tmp_path / "one")
    names = [key for key in last(tmp_path / "two") if key.endswith("running_var")]
    assert names
    assert 0 <= apart(tmp_path / "two", tmp_path / "one") < 1e-9


@pytest.mark.slow
def test_two_stopped_processes_go_on_to_the_same_bits(tmp_path):
    common = [*TINY, "training.batch_size=2", "training.epochs=6", "training.noise=0.1", "runtime.checkpoint_steps=1"]
    code, said = finish(torchrun(*common, "--output", tmp_path / "whole"))
    assert code == 0, said[-3000:]
    process = torchrun(*common, "--output", tmp_path / "cut")
    _wait_for_steps(tmp_path / "cut", 2, process)
    process.send_signal(signal.SIGTERM)
    code, said = finish(process)
    # torchrun hands the signal on, waits for its workers, and ends with a code of its own.
    assert (code, said.count("stopped by SIGTERM")) == (1, 2)
    assert load_checkpoint(tmp_path / "cut" / "checkpoints" / "last").position["step"] < 24
    code, said = finish(torchrun("--resume", tmp_path / "cut"))
    assert code == 0, said[-3000:]
    assert apart(tmp_path / "whole", tmp_path / "cut") == 0.0


@pytest.mark.slow
def test_torchrun_reports_the_code_of_a_stopped_worker(tmp_path):
    process = torchrun(*TINY, "training.batch_size=2", "training.epochs=5000", "--output", tmp_path / "run")
    _wait_for_steps(tmp_path / "run", 2, process)
    os.kill(_worker(process.pid, rank=1), signal.SIGTERM)
    code, said = finish(process)
    assert (code, said.count("stopped by SIGTERM")) == (1, 2)
    assert "exitcode  : 143" in said
    position = load_checkpoint(tmp_path / "run" / "checkpoints" / "last").position
    assert position["step"] == max(line["step"] for line in read_log(tmp_path / "run" / "log.jsonl"))


@pytest.mark.slow
def test_a_dead_process_is_started_again_and_the_weights_are_the_same(tmp_path):
    common = [*TINY, "training.batch_size=2", "training.epochs=6", "runtime.checkpoint_steps=1"]
    code, said = finish(torchrun(*common, "--output", tmp_path / "whole"))
    assert code == 0, said[-3000:]
    process = torchrun(*common, "--output", tmp_path / "died", restarts=2)
    _wait_for_steps(tmp_path / "died", 3, process)
    os.kill(_worker(process.pid, rank=1), signal.SIGKILL)
    code, said = finish(process)
    assert code == 0, said[-3000:]
    assert apart(tmp_path / "whole", tmp_path / "died") == 0.0


def _wait_for_steps(folder: Path, steps: int, process: subprocess.Popen[str]) -> None:
    from run_process import wait_for

    def there() -> bool:
        assert process.poll() is None, process.communicate()[0][-3000:]
        return len(read_log(folder / "log.jsonl")) >= steps

    wait_for(there, 120.0)


def _worker(parent: int, rank: int) -> int:
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
