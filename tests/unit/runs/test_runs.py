"""What a run leaves: locks held by the system, logs that survive a cut, records that are whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError, DataFormatError, RunError
from spectrakan.runs import RunFolder, RunLock, RunLog, data_digest, make_record, provenance, read_log
from spectrakan.runs.log import rewind_log
from spectrakan.runs.record import read_record, write_record


def test_the_second_in_a_folder_is_refused_at_once_and_told_who_holds_it(tmp_path):
    with RunLock(tmp_path / ".lock"):
        start = time.perf_counter()
        with pytest.raises(RunError, match=f"in use by process {os.getpid()} on "):
            RunLock(tmp_path / ".lock").__enter__()
        assert time.perf_counter() - start < 5
    with RunLock(tmp_path / ".lock"):
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
        RunLock(tmp_path / ".lock").__enter__()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with RunLock(tmp_path / ".lock"):
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
    rewind_log(path, step=1, epoch=0)
    assert [(line["event"], line["step"]) for line in read_log(path)] == [("step", 0), ("step", 1)]
    assert path.read_text().endswith("}\n")


def test_data_digests_see_every_number_and_no_file():
    made = generate("darcy2d", 2, 8)
    digest = data_digest(made)
    assert digest == data_digest(replace(made, values=np.asarray(made.values).copy()))
    changed = np.asarray(made.values).copy()
    changed[1, 0, 3, 3, 0] = np.nextafter(changed[1, 0, 3, 3, 0], 1)
    assert data_digest(replace(made, values=changed)) != digest
    assert data_digest(replace(made, times=made.times + 1)) != digest


def test_provenance_names_versions_but_no_machine():
    facts = provenance(data_sha256="x")
    assert facts["versions"]["torch"].startswith("2.")
    assert facts["data_sha256"] == "x"
    assert os.uname().nodename not in json.dumps(facts).split('"')


def test_records_have_all_keys_and_refuse_others(tmp_path):
    with pytest.raises(DataFormatError, match="no place for extra"):
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
