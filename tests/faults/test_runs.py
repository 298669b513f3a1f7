"""Signals, full disks, little memory, bad input: real processes, their exit codes, and what they leave."""

from __future__ import annotations

import json
import shutil
import signal
import time

import h5py
import numpy as np
import pytest
from run_process import TINY, Launcher, contents, wait_for

from spectrakan.checkpoint import load_checkpoint
from spectrakan.data.files import write_dataset
from spectrakan.data.generate import generate
from spectrakan.runs import read_log

RUN = ("train", "darcy2d", *TINY, "training.epochs=12")
LONG = ("train", "darcy2d", *TINY, "training.epochs=5000")


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    made = Launcher(tmp_path_factory.mktemp("faults"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def reference(launcher):
    assert launcher.run(*RUN, "--output", "reference")[0] == 0
    return contents(launcher.folder / "reference")


def begun(launcher, arguments, name, steps=3):
    process = launcher.start(*arguments, "--output", name)
    wait_for(lambda: len(read_log(launcher.folder / name / "log.jsonl")) >= steps)
    return process


def test_a_run_that_was_killed_before_it_was_bound_to_its_data_goes_on(launcher, reference):
    """Between the two files of a run's start there is its settings' alone."""
    folder = launcher.folder / "unbound"
    folder.mkdir()
    shutil.copy(launcher.folder / "reference" / "config.yaml", folder)
    code, errors = launcher.run("train", "--resume", "unbound")
    assert code == 0, errors
    assert contents(folder) == reference


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_run_after_a_checkpoint_within_one_step(launcher, reference, number, code):
    name = f"signal{code}"
    process = begun(launcher, RUN, name)
    seen = max(line["step"] for line in read_log(launcher.folder / name / "log.jsonl"))
    process.signal(number)
    assert process.wait() == code
    assert "Traceback" not in process.errors
    assert f"run folder: {name}" in process.errors, "the folder is told at the beginning"
    assert f"stopped; continue by: spectrakan train --resume {name}" in process.errors
    lines = read_log(launcher.folder / name / "log.jsonl")
    saved = load_checkpoint(launcher.folder / name / "checkpoints" / "last").position["step"]
    assert saved == max(line["step"] for line in lines)
    assert seen <= saved < 48
    assert launcher.run("train", "--resume", name)[0] == 0
    assert contents(launcher.folder / name) == reference


def test_a_full_disk_stops_a_run_and_leaves_the_previous_checkpoint(launcher, reference):
    process = begun(launcher, RUN, "disk")
    process.signal(signal.SIGTERM)
    process.wait()
    before = contents(launcher.folder / "disk")
    largest = max(len(content) for content in before.values())
    code, errors = launcher.run("train", "--resume", "disk", file_bytes=largest // 2)
    assert code == 1
    assert "cannot write the checkpoint" in errors
    assert "previous one is intact" in errors
    assert "Traceback" not in errors
    assert contents(launcher.folder / "disk") == before
    assert launcher.run("train", "--resume", "disk")[0] == 0
    assert contents(launcher.folder / "disk") == reference


def test_the_second_run_in_a_folder_is_refused_at_once(launcher):
    process = begun(launcher, LONG, "taken")
    start = time.monotonic()
    code, errors = launcher.run("train", "--resume", "taken")
    assert time.monotonic() - start < 1.0
    assert code == 1
    assert f"in use by process {process.pid}" in errors
    process.signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    # The lock died with its holder: the next one gets in, and is stopped here.
    heir = launcher.start("train", "--resume", "taken")
    wait_for(lambda: json.loads((launcher.folder / "taken" / ".lock").read_text() or '{"pid": 0}')["pid"] == heir.pid)
    heir.signal(signal.SIGKILL)
    heir.wait()


def test_too_little_memory_names_batch_size_and_resolution(launcher):
    large = ["model.width=256", "model.num_layers=8", "data.resolution=64", "data.num_samples=10"]
    arguments = [*RUN, *large, "training.batch_size=8", "--output", "memory"]
    code, errors = launcher.run(*arguments, more_memory=350_000_000)
    assert code == 1, errors[-2000:]
    assert "not enough memory for training.batch_size=8 at data.resolution=64" in errors
    assert "Traceback" not in errors


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before_it(launcher, reference):
    process = begun(launcher, RUN, "passed")
    process.signal(signal.SIGTERM)
    process.wait()
    path = launcher.folder / "passed" / "checkpoints" / "last" / "weights.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 4]))
    code, errors = launcher.run("train", "--resume", "passed")
    assert code == 0, errors
    assert "was changed or damaged" in errors
    assert "going on from the checkpoint before it" in errors
    assert contents(launcher.folder / "passed") == reference


def test_parts_of_another_run_and_edited_settings_are_refused(launcher, reference):
    process = begun(launcher, [*RUN, "--seed", "5"], "mixed")
    process.signal(signal.SIGTERM)
    process.wait()
    place = launcher.folder / "mixed"
    own = shutil.copytree(place / "checkpoints", launcher.folder / "own")
    for part in ("last", "best"):
        shutil.rmtree(place / "checkpoints")
        shutil.copytree(own, place / "checkpoints")
        shutil.rmtree(place / "checkpoints" / part, ignore_errors=True)
        shutil.copytree(launcher.folder / "reference" / "checkpoints" / part, place / "checkpoints" / part)
        code, errors = launcher.run("train", "--resume", "mixed")
        assert code == 1, (part, errors)
        assert f"checkpoints/{part}' is of another run" in errors
    config = (place / "config.yaml").read_text()
    (place / "config.yaml").write_text(config.replace("batch_size: 2", "batch_size: 3"))
    code, errors = launcher.run("train", "--resume", "mixed")
    assert code == 1
    assert "training.batch_size: 2 -> 3" in errors


def test_a_folder_that_is_moved_while_training_ends_the_run_with_an_error(launcher):
    process = begun(launcher, LONG, "moved")
    (launcher.folder / "moved").rename(launcher.folder / "elsewhere")
    assert process.wait() == 1
    said = ("was deleted or moved while the run was writing to it", "cannot write the checkpoint")
    assert any(text in process.errors for text in said), process.errors
    assert "Traceback" not in process.errors


def test_a_flipped_bit_in_a_checkpoint_is_named_and_refused(launcher):
    process = begun(launcher, [*RUN, "runtime.keep_checkpoints=1"], "flipped")
    process.signal(signal.SIGTERM)
    process.wait()
    folder = launcher.folder / "flipped" / "checkpoints" / "last"
    for path in (folder / "weights.safetensors", folder / "position.json", folder / "manifest.json"):
        content = path.read_bytes()
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :])
        code, errors = launcher.run("train", "--resume", "flipped")
        assert code == 2, path
        assert "checkpoints/last" in errors
        assert len(errors.strip().splitlines()[-1:]) == 1
        assert "Traceback" not in errors
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["train", "darcy3d"], "did you mean 'darcy2d'"),
        (["train", "darcy2d", "training.epoch=3"], "did you mean 'epochs'"),
        (["train", "darcy2d", "--model", "spectracan"], "did you mean 'spectrakan'"),
        (["train", "darcy2d", "model.width=wide"], "model.width"),
        (["train", "darcy2d", "--device", "tpu"], "runtime.device"),
        (["train", "broken.yaml"], "broken.yaml"),
        (["train", "evil.yaml"], "evil.yaml"),
        (["train", "absent.yaml"], "absent.yaml"),
        (["train", "darcy2d", "--data", "absent.h5"], "absent.h5"),
        (["train", "--resume", "absent"], "config.yaml"),
        (["train", "darcy2d", "--resume", "reference"], "--resume takes nothing else but --epochs"),
        (["train"], "name a problem, or give data"),
        (["evaluate", "absent"], "config.yaml"),
        (["compare", "absent"], "is not the folder of a run"),
    ],
)
def test_mistakes_end_in_one_line_and_exit_code_2(launcher, arguments, told):
    (launcher.folder / "broken.yaml").write_text("task: [darcy2d\n")
    marker = launcher.folder / "marker"
    (launcher.folder / "evil.yaml").write_text(f'!!python/object/apply:os.system ["touch {marker}"]\n')
    before = set(launcher.folder.iterdir())
    code, errors = launcher.run(*arguments)
    assert code == 2, errors
    assert told in errors
    assert "Traceback" not in errors
    assert len(errors.strip().splitlines()) == 1
    left = {path.name for path in set(launcher.folder.iterdir()) - before}
    assert {name for name in left if not name.endswith((".out", ".err"))} == set()
    assert not marker.exists()


def test_nan_in_data_is_found_before_the_first_step(launcher):
    made = generate("darcy2d", 10, 8, dtype=np.float32)
    values = np.asarray(made.values)
    values[3, 0, 2, 5, 0] = np.nan
    write_dataset(launcher.folder / "nan.h5", made)
    code, errors = launcher.run(*RUN, "--data", "nan.h5", "--output", "nan")
    assert code == 2
    assert "nan.h5" in errors
    assert "sample 3, frame 0" in errors
    assert not (launcher.folder / "nan").exists()


def test_data_that_changed_under_a_run_are_refused(launcher):
    write_dataset(launcher.folder / "data.h5", generate("darcy2d", 10, 8, dtype=np.float32))
    process = begun(launcher, [*LONG, "--data", "data.h5"], "changed")
    process.signal(signal.SIGTERM)
    assert process.wait() == 143
    write_dataset(launcher.folder / "data.h5", generate("darcy2d", 10, 8, seed=9, dtype=np.float32))
    code, errors = launcher.run("train", "--resume", "changed")
    assert code == 1
    assert "the run was started with data_sha256" in errors


def test_commands_around_a_run(launcher, reference):
    folder = launcher.folder
    assert launcher.run("evaluate", "reference", "--json")[0] == 0
    scores = json.loads((folder / f"{launcher.count}.out").read_text())
    record = json.loads((folder / "reference" / "record.json").read_text())
    assert scores["metrics"]["relative_l2"] == record["metrics"]["relative_l2"]
    write_dataset(folder / "start.h5", generate("darcy2d", 2, 8, dtype=np.float32))
    assert launcher.run("predict", "reference", "start.h5", "-o", "answer.h5") == (0, "")
    with h5py.File(folder / "answer.h5") as answer:
        assert answer["values"].shape == (2, 1, 8, 8, 1)
    code, errors = launcher.run("predict", "reference", "start.h5", "-o", "answer.h5")
    assert (code, "exists already" in errors) == (2, True)
    assert launcher.run("compare", "reference", "reference")[0] == 0
    assert launcher.run("train", "--resume", "reference")[0] == 0
    assert contents(folder / "reference") == reference
    assert launcher.run("train", "darcy2d", *TINY, "--print-config")[0] == 0
    (folder / "again.yaml").write_text((folder / f"{launcher.count}.out").read_text())
    assert launcher.run("train", "again.yaml", "training.epochs=12", "--output", "again")[0] == 0
    assert contents(folder / "again") == reference
