"""Two processes of one run: signals to both or to one of them, their exit codes, and going on."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest
from run_process import TINY, Launcher, Process, contents, wait_for

from spectrakan.checkpoint import load_checkpoint
from spectrakan.runs import read_log

RUN = ("train", "darcy2d", *TINY, "training.epochs=12", "training.noise=0.1")


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    made = Launcher(tmp_path_factory.mktemp("two"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def reference(launcher: Launcher) -> dict[str, bytes]:
    assert [process.wait() for process in launcher.start_group(*RUN, "--output", "whole")] == [0, 0]
    return contents(launcher.folder / "whole")


def begun(launcher: Launcher, name: str) -> list[Process]:
    group = launcher.start_group(*RUN, "--output", name)
    wait_for(lambda: len(read_log(launcher.folder / name / "log.jsonl")) >= 3)
    return group


@pytest.mark.parametrize(
    ("number", "told", "code"),
    [(signal.SIGTERM, (0, 1), 143), (signal.SIGTERM, (1,), 143), (signal.SIGINT, (0, 1), 130)],
)
def test_a_signal_ends_both_after_a_checkpoint_and_two_go_on_to_the_same_bits(
    launcher: Launcher, reference: dict[str, bytes], number: int, told: tuple[int, ...], code: int
):
    name = f"signal{number}to{len(told)}"
    group = begun(launcher, name)
    for rank in told:
        group[rank].signal(number)
    assert [process.wait() for process in group] == [code, code]
    assert all(f"stopped by {signal.Signals(number).name}" in process.errors for process in group)
    assert all("Traceback" not in process.errors for process in group)
    saved = load_checkpoint(launcher.folder / name / "checkpoints" / "last").position
    assert saved["step"] == max(line["step"] for line in read_log(launcher.folder / name / "log.jsonl"))
    assert 3 <= saved["step"] < 24
    assert [process.wait() for process in launcher.start_group("train", "--resume", name)] == [0, 0]
    assert contents(launcher.folder / name) == reference


def test_another_number_of_processes_shares_the_same_batch_or_is_refused(launcher: Launcher):
    group = begun(launcher, "counted")
    group[0].signal(signal.SIGTERM)
    assert [process.wait() for process in group] == [143, 143]
    before = contents(launcher.folder / "counted")
    for process in launcher.start_group("train", "--resume", "counted", processes=3):
        assert process.wait() == 2
        assert "takes 4 windows a step in all, which 3 processes cannot share equally" in process.errors
    assert contents(launcher.folder / "counted") == before
    code, errors = launcher.run("train", "--resume", "counted")
    assert code == 0, errors
    lines = [line for line in read_log(launcher.folder / "counted" / "log.jsonl") if line["event"] == "step"]
    assert [line["step"] for line in lines] == list(range(1, 25)), "no step is lost or taken twice"


def test_a_process_whose_partner_died_says_so_and_ends(launcher: Launcher, reference: dict[str, bytes]):
    group = begun(launcher, "died")
    group[1].signal(signal.SIGKILL)
    assert group[1].wait() == -signal.SIGKILL
    assert group[0].wait() == 1
    assert "process 0 lost another process of this run" in group[0].errors
    assert [process.wait() for process in launcher.start_group("train", "--resume", "died")] == [0, 0]
    assert contents(launcher.folder / "died") == reference


def test_a_partner_that_hangs_is_noticed_after_the_time_that_was_set(launcher: Launcher):
    group = launcher.start_group(*RUN, "runtime.process_timeout=8", "--output", "hung")
    wait_for(lambda: len(read_log(launcher.folder / "hung" / "log.jsonl")) >= 3)
    group[1].signal(signal.SIGSTOP)
    begin = time.monotonic()
    assert group[0].wait() == 1
    assert time.monotonic() - begin < 60.0
    assert "process 0 lost another process of this run" in group[0].errors
    assert "Traceback" not in group[0].errors
    group[1].signal(signal.SIGKILL)
    assert group[1].wait() == -signal.SIGKILL
