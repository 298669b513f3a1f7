"""What a run leaves: locks held by the system, logs that survive a cut, records that are whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from spectrakan.errors import ConfigError, DataFormatError, RunError
from spectrakan.runs import RunFolder, RunLog, cut_log, make_record, provenance, read_log
from spectrakan.runs.folder import locked
from spectrakan.runs.record import read_record, write_record


def test_the_second_in_a_folder_is_refused_at_once_and_told_who_holds_it(tmp_path):
    with locked(tmp_path / ".lock"):
        start = time.perf_counter()
        with pytest.raises(RunError, match=f"in use by process {os.getpid()} on "):
            locked(tmp_path / ".lock").__enter__()
        assert time.perf_counter() - start < 5
    with locked(tmp_path / ".lock"):
        pass


HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print('{"pid": 1, "host": "gone"}', file=file, flush=True)
print("held", flush=True)
time.sleep(60)
"""


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / ".lock")], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(RunError, match="process 1 on gone"):
        locked(tmp_path / ".lock").__enter__()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with locked(tmp_path / ".lock"):
        assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()


def test_a_log_that_was_cut_short_is_read_and_continued(tmp_path):
    path = tmp_path / "log.jsonl"
    log = RunLog(path)
    for step in range(3):
        log.write("step", epoch=0, step=step, loss=0.5 / (step + 1))
    log.write("step", epoch=0, step=3, loss=float("nan"))
    log.close()
    path.write_text(path.read_text() + '{"event": "st')
    assert [line["step"] for line in read_log(path)] == [0, 1, 2, 3]
    assert read_log(path)[3]["loss"] == "nan"
    log = RunLog(path)
    log.write("epoch", epoch=0, step=1)
    log.close()
    cut_log(path, 2)
    assert [(line["event"], line["step"]) for line in read_log(path)] == [("step", 0), ("step", 1)]
    assert path.read_text().endswith("}\n")


def test_provenance_names_versions_but_no_machine():
    facts = provenance(data_sha256="x")
    assert facts["versions"]["torch"].startswith("2.")
    assert facts["data_sha256"] == "x"
    assert os.uname().nodename not in json.dumps(facts).split('"')


def test_records_have_all_keys_and_refuse_others(tmp_path):
    with pytest.raises(DataFormatError, match="no key extra"):
        make_record(extra=1)
    write_record(tmp_path / "record.json", make_record(task="darcy2d", metrics={"rmse": float("inf")}))
    assert read_record(tmp_path / "record.json")["metrics"] == {"rmse": None}
    (tmp_path / "record.json").write_text("[]")
    with pytest.raises(DataFormatError, match="not the record of a run"):
        read_record(tmp_path / "record.json")


def test_a_folder_without_settings_is_no_run(tmp_path):
    with pytest.raises(ConfigError, match=r"no config\.yaml"):
        RunFolder(tmp_path).read_config()
    RunFolder(tmp_path).write_config({"task": "darcy2d"})
    assert RunFolder(tmp_path).read_config() == {"task": "darcy2d"}
    assert not RunFolder(tmp_path).finished


def test_a_log_is_cut_to_the_lines_that_a_checkpoint_counted(tmp_path):
    """Log first, then checkpoint: a kill between the two leaves lines that are written again, and none is lost."""
    path = tmp_path / "log.jsonl"
    log = RunLog(path)
    marks = []
    for step in range(4):
        log.write("step", epoch=0, step=step)
        marks.append(log.mark())
    log.close()
    assert marks == [1, 2, 3, 4]
    path.write_text(path.read_text() + '{"event": "epo')
    cut_log(path, 3)
    assert [line["step"] for line in read_log(path)] == [0, 1, 2]
    again = RunLog(path)
    again.write("step", epoch=0, step=3)
    assert again.mark() == 4
    again.close()


@pytest.mark.parametrize("moved", [True, False])
def test_a_folder_that_is_gone_ends_the_run(tmp_path, moved):
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.write_config({"task": "darcy2d"})
    log = RunLog(folder.log)
    log.write("step", epoch=0, step=0)
    folder.require_present()
    if moved:
        folder.path.rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(folder.path)
    with pytest.raises(RunError, match="was deleted or moved"):
        log.write("step", epoch=0, step=1)
    with pytest.raises(RunError, match="was deleted or moved"):
        log.mark()
    with pytest.raises(RunError, match="was deleted or moved"):
        folder.require_present()
    log.close()


def test_drafts_of_a_killed_process_are_removed(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_config({"task": "darcy2d"})
    (folder.last.parent / ".last.7.draft").mkdir(parents=True)
    (folder.last.parent / ".last.7.draft" / "weights.safetensors").touch()
    (tmp_path / ".record.json.7.draft").touch()
    (tmp_path / "evaluations").mkdir()
    (tmp_path / "evaluations" / ".test.json.7.draft").touch()
    folder.discard_drafts()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["checkpoints", "config.yaml", "evaluations"]


def test_the_manifest_binds_settings_and_data_to_one_id(tmp_path):
    config = {"task": "darcy2d", "training": {"epochs": 3, "batch_size": 4}}
    folders = [RunFolder(tmp_path / name) for name in "abc"]
    for folder, epochs, size in zip(folders, (3, 8, 3), (4, 4, 5), strict=True):
        folder.path.mkdir()
        folder.write_config({**config, "training": {"epochs": epochs, "batch_size": size}})
    ids = [folder.write_manifest(data_sha256="d1") for folder in folders]
    assert ids[0] == ids[1] != ids[2], "a run that is extended keeps its id, another run has another"
    run = folders[0]
    assert run.verify(data_sha256="d1") == ids[0]
    with pytest.raises(RunError, match="started with data_sha256 d1, now it is d2"):
        run.verify(data_sha256="d2")
    text = run.config.read_text()
    run.config.write_text("# a comment changes nothing\n" + text)
    assert run.verify() == ids[0]
    run.config.write_text(text.replace("epochs: 3", "epochs: 9") + "seed: 1\n")
    with pytest.raises(RunError, match=r"training\.epochs: 3 -> 9; seed: None -> 1"):
        run.verify()
    run.config.write_text(text)
    run.manifest.write_text(run.manifest.read_text().replace('"batch_size": 4', '"batch_size": 9'))
    with pytest.raises(RunError, match="changed or damaged"):
        run.verify()
    run.manifest.write_text("[" * 100_000)
    with pytest.raises(DataFormatError, match="not valid JSON"):
        run.verify()


def test_an_extended_run_keeps_its_id_and_loses_its_record(tmp_path):
    run = RunFolder(tmp_path)
    run.write_config({"task": "darcy2d", "training": {"epochs": 3}})
    before = run.write_manifest(data_sha256="d1")
    run.record.touch()
    run.extend({"task": "darcy2d", "training": {"epochs": 5}})
    assert run.read_config()["training"]["epochs"] == 5
    assert run.verify(data_sha256="d1") == before
    assert not run.finished


def test_a_log_of_gigabytes_is_refused_unread(tmp_path):
    log = tmp_path / "log.jsonl"
    log.touch()
    os.truncate(log, 5 * 2**30)
    with pytest.raises(RunError, match=r"cannot read .*log\.jsonl': it has 5368709120 bytes"):
        read_log(log)
