"""What this machine can do: bfloat16 matrix products, which some virtual machines cannot, and memory that is kept.

Some virtual machines pass on an Intel processor's flag for AMX, but not the right to use it. Torch (oneDNN) then
ends the process with an illegal instruction at the first bfloat16 matrix product. A cap on the instruction set,
read once when torch is loaded, avoids it. This file imports nothing heavy, so that the cap can be set in time.
"""

import ctypes
import os
import platform
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

CAP_NAME = "ONEDNN_MAX_CPU_ISA"
CAP_VALUE = "AVX512_CORE_FP16"
REMEDY = f"set the environment variable {CAP_NAME}={CAP_VALUE} before Python starts"

PROGRAM = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); (a @ a).sum().item()"
"""What the child process runs: the product that ends the process where AMX is announced and missing."""
PROBE_SECONDS = 120
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""Names of glibc's settings: blocks beyond the first, and freed memory beyond the second, go back to the system."""
CPU_DESCRIPTION = Path("/proc/cpuinfo")


def announces_amx(description: Path = CPU_DESCRIPTION) -> bool:
    """Whether the processor says that it has AMX; only then can the fault occur."""
    try:
        flags = next(line for line in description.read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return False
    return "amx_bf16" in flags.split()


def product_survives(program: str = PROGRAM) -> bool:
    """Run a bfloat16 product in a child process; False if a signal ended the child.

    Any other failure (torch is missing, no time left) is not this fault and counts as survived.
    """
    command = [sys.executable, "-c", program]
    try:
        return subprocess.run(command, capture_output=True, timeout=PROBE_SECONDS, check=False).returncode >= 0
    except (OSError, subprocess.SubprocessError):
        return True


def needs_cap() -> bool:
    """Whether a bfloat16 product on this CPU would end this process, as it was started."""
    return CAP_NAME not in os.environ and announces_amx() and not _remembered()


def cap_instructions() -> None:
    """Set the cap if this machine needs it. Call it before torch is loaded."""
    if needs_cap():
        os.environ[CAP_NAME] = CAP_VALUE


def keep_freed_memory() -> None:
    """Let the C library (glibc) reuse freed blocks of up to 32 MiB instead of returning them to the system.

    Each step of a training allocates the same blocks again; returned ones cost a page fault for every 4 KiB. Other C
    libraries keep theirs as they are.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # not glibc
            library = ctypes.CDLL(None)
            library.mallopt(_MMAP_THRESHOLD, 2**25)
            library.mallopt(_TRIM_THRESHOLD, 2**29)


@cache
def _remembered() -> bool:
    """The probe's result, kept between processes: it takes seconds and depends on the machine alone."""
    place = _cache_file()
    try:
        return place.read_text() == "survives"
    except OSError:
        found = product_survives()
    with suppress(OSError):  # a home that cannot be written to: the next process probes again
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("survives" if found else "dies")
    return found


def _cache_file() -> Path:
    """One file for each boot of a machine: a virtual machine may be moved to another processor when it restarts."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = "unknown"
    return home / "spectrakan" / f"bfloat16-{platform.node()}-{boot}"
