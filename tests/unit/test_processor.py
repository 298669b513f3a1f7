"""bfloat16 on processors that announce AMX and cannot execute it: decided by a probe that may die."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from spectrakan import processor
from spectrakan.errors import ConfigError
from spectrakan.processor import CAP_NAME, CAP_VALUE, announces_amx, cap_instructions, needs_cap, product_survives
from spectrakan.training.runtime import require_bfloat16

DYING = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


def test_a_child_that_a_signal_ends_did_not_survive():
    assert not product_survives(DYING)


@pytest.mark.parametrize("program", ["pass", "raise SystemExit(3)"])
def test_a_child_that_ends_by_itself_survived(program):
    assert product_survives(program)


@pytest.fixture
def machine(monkeypatch):
    """A machine that announces AMX or not, whose probe survives or dies; no cap is set."""

    def imitate(announced: bool, survives: bool) -> None:
        monkeypatch.setattr(processor, "announces_amx", lambda: announced)
        monkeypatch.setattr(processor, "_remembered", lambda: survives)
        monkeypatch.delenv(CAP_NAME, raising=False)

    monkeypatch.setenv(CAP_NAME, "")
    return imitate


def test_the_cap_is_set_where_the_probe_dies(machine):
    machine(announced=True, survives=False)
    assert needs_cap()
    cap_instructions()
    assert os.environ[CAP_NAME] == CAP_VALUE
    assert not needs_cap()


def test_no_cap_where_the_probe_survives_or_amx_is_not_announced(machine):
    for announced, survives in ((True, True), (False, False)):
        machine(announced=announced, survives=survives)
        cap_instructions()
        assert CAP_NAME not in os.environ


def test_a_cap_that_the_user_set_stays(machine, monkeypatch):
    machine(announced=True, survives=False)
    monkeypatch.setenv(CAP_NAME, "AVX2")
    cap_instructions()
    assert os.environ[CAP_NAME] == "AVX2"


def test_amx_is_read_from_the_flags(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("model name : x\nflags\t\t: fpu avx512f amx_bf16 amx_tile\n")
    assert announces_amx(file)
    file.write_text("model name : amx_bf16\nflags\t\t: fpu avx512f\n")
    assert not announces_amx(file)
    assert not announces_amx(tmp_path / "missing")


def test_the_library_refuses_bfloat16_with_the_remedy_where_the_probe_dies(machine):
    machine(announced=True, survives=False)
    with pytest.raises(ConfigError, match=f"{CAP_NAME}={CAP_VALUE} before Python starts"):
        require_bfloat16()


def test_the_command_line_caps_before_torch_is_loaded(tmp_path):
    """A machine is imitated on which AMX is announced and the remembered probe died."""
    program = (
        f"DYING = {DYING!r}\n"
        "import os, sys, spectrakan.processor as p\n"
        "p.announces_amx, p._remembered = lambda: True, lambda: p.product_survives(DYING)\n"
        "assert 'torch' not in sys.modules\n"
        "from spectrakan.cli import main\n"
        "sys.argv = ['spectrakan', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(os.environ[p.CAP_NAME])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != CAP_NAME}
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert told.stdout.splitlines()[-1] == CAP_VALUE


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_reused():
    """Blocks of 8 MiB, freed and asked for again: without the setting each has 2048 new pages."""
    program = """
import resource, numpy as np
from spectrakan.processor import keep_freed_memory
{}
for _ in range(3): np.ones(2**20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    blocks = [np.ones(2**20) for _ in range(4)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    faults = [
        int(subprocess.run([sys.executable, "-c", program.format(call)], capture_output=True, check=True).stdout)
        for call in ("", "keep_freed_memory()")
    ]
    assert faults[1] < faults[0] / 4
