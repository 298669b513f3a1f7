"""Real `spectrakan` processes for tests, started by a process that has imported the package once.

Each is a fork with its own pid, signals and limits: it can be killed, stopped and starved like any other,
without the seconds that an import takes.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = """
import json, os, resource, sys
import scipy.sparse.linalg
import torch._dynamo  # optimizers load it on first use
from spectrakan.cli import main
import spectrakan.cli.questions, spectrakan.cli.train, spectrakan.training, spectrakan.theory  # what commands load

def address_space():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

for line in sys.stdin:
    order = json.loads(line)
    if "wait" in order:
        _, status = os.waitpid(order["wait"], 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        continue
    code = 70
    try:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.chdir(order["folder"])
        os.environ.update(order["environment"])
        if order["file_bytes"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], order["file_bytes"]))
        if order["more_memory"]:
            room = address_space() + order["more_memory"]
            resource.setrlimit(resource.RLIMIT_AS, (room, room))
        sys.argv = ["spectrakan", *order["arguments"]]
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        import traceback
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
"""


@dataclass
class Process:
    """One command under way."""

    launcher: Launcher
    pid: int
    out: Path
    err: Path

    def wait(self) -> int:
        """The exit code; negative for a signal that killed it."""
        return self.launcher.ask({"wait": self.pid})

    def ended_within(self, seconds: float) -> bool:
        """Wait at most so long; whether it ended by itself, which shows in its state before it is waited for."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
            time.sleep(min(0.02, max(0.0, end - time.monotonic())))
        return False

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    @property
    def errors(self) -> str:
        """What it wrote to stderr."""
        return self.err.read_text()


class Launcher:
    """Starts `spectrakan` commands in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.server = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ask(self, order: dict[str, Any]) -> int:
        """One order, one number."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def start(
        self,
        *arguments: object,
        file_bytes: int = 0,
        more_memory: int = 0,
        environment: dict[str, str] | None = None,
    ) -> Process:
        """Start a command, with at most so many bytes a file or more bytes of memory, if given."""
        self.count += 1
        out, err = self.folder / f"{self.count}.out", self.folder / f"{self.count}.err"
        order = {
            "arguments": [str(argument) for argument in arguments],
            "folder": str(self.folder),
            "out": str(out),
            "err": str(err),
            "file_bytes": file_bytes,
            "more_memory": more_memory,
            "environment": environment or {},
        }
        return Process(self, self.ask(order), out, err)

    def start_group(self, *arguments: object, processes: int = 2) -> list[Process]:
        """Start a command in several processes that find each other as torchrun's do."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        common = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        return [
            self.start(*arguments, environment={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(processes)
        ]

    def run(self, *arguments: object, **limits: int) -> tuple[int, str]:
        """Run a command to its end: exit code and stderr."""
        process = self.start(*arguments, **limits)
        return process.wait(), process.errors

    def close(self) -> None:
        """End the server."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.close()
        self.server.wait(30)
        self.server.stdout.close()


TINY = (
    "model.name=amfno",
    "model.width=4",
    "model.num_layers=1",
    "model.num_modes=3",
    "data.num_samples=10",
    "data.resolution=8",
    "training.batch_size=2",
    "model.ema_decay=0.9",
    "runtime.checkpoint_steps=1",
    "runtime.log_steps=1",
)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of both checkpoints of a run; earlier versions of `last` depend on when a run was killed."""
    files = [
        path for name in ("last", "best") for path in (folder / "checkpoints" / name).rglob("*") if path.is_file()
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    """Until a condition holds, looking twenty times a second."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
