"""HDF5 behind `hf://`, from a local server that speaks the part of the Hub's API that reading needs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectrakan as sk
from spectrakan.data import write_dataset

pytest.importorskip("huggingface_hub")
COMMIT = "1" * 40
READ = """
import sys
import numpy as np, spectrakan as sk
data = sk.load_dataset("hf://datasets/org/waves/train/waves.hdf5", most_bytes=0)
print(data.grid.boundary, data.times.tolist())
np.save(sys.argv[1], np.asarray(data.values[5:6, 1:3]))
try:
    sk.load_dataset("hf://datasets/org/waves/train/missing.hdf5")
except sk.errors.SpectraKANError as problem:
    print(problem)
"""


class Dataset(BaseHTTPRequestHandler):
    """A repository with one file, which is given in the parts that are asked for."""

    content: bytes
    sent: list[int]

    def log_message(self, *_: Any) -> None: ...

    def _send(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _json(self, answer: object, code: int = 200) -> None:
        self._send(code, json.dumps(answer).encode(), Content_Type="application/json")

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._json(self._files() if "paths-info" in self.path and "waves.hdf5" in asked else [])

    def _files(self) -> list[dict[str, object]]:
        tag = hashlib.sha1(self.content).hexdigest()  # noqa: S324 - a name, as git's
        return [{"type": "file", "path": "train/waves.hdf5", "size": len(self.content), "oid": tag}]

    def do_GET(self) -> None:
        if self.path.endswith("/resolve/main/train/waves.hdf5"):
            first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
            body = self.content[first : last + 1]
            self.sent.append(len(body))
            told = f"bytes {first}-{first + len(body) - 1}/{len(self.content)}"
            return self._send(206, body, Content_Range=told)
        if re.fullmatch(r"/api/datasets/org/waves(/revision/main)?(\?.*)?", self.path):
            return self._json({"id": "org/waves", "sha": COMMIT, "siblings": [], "tags": []})
        if self.path.startswith("/api/datasets/org/waves/tree/main/train"):
            return self._json(self._files())
        return self._json({"error": "Entry not found"}, 404)

    def do_HEAD(self) -> None:
        self.do_GET()


@pytest.fixture
def waves() -> sk.Trajectories:
    """Eight megabytes."""
    values = np.random.default_rng(0).random((8, 4, 256, 256, 1), dtype=np.float32)
    return sk.Trajectories.from_arrays(
        values, fields=("height",), times=[0.0, 0.5, 1.0, 1.5], boundary=("periodic", "wall"), name="waves"
    )


@pytest.fixture
def server(waves: sk.Trajectories, tmp_path: Path) -> Iterator[tuple[str, type[Dataset]]]:
    path = write_dataset(tmp_path / "waves.hdf5", waves, dtype=np.float32, layout="the_well")
    kind = type("Fresh", (Dataset,), {"content": path.read_bytes(), "sent": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}", kind
    running.shutdown()
    running.server_close()


def test_a_window_is_streamed_from_a_repository_of_data(server: Any, waves: sk.Trajectories, tmp_path: Path):
    address, repository = server
    known = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ, str(tmp_path / "window.npy")],
        env={**os.environ, **known, "NO_PROXY": "127.0.0.1"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told, problem = done.stdout.strip().splitlines()
    assert told == "('periodic', 'wall') [0.0, 0.5, 1.0, 1.5]"
    np.testing.assert_array_equal(np.load(tmp_path / "window.npy"), np.asarray(waves.values)[5:6, 1:3])
    assert 0 < sum(repository.sent) < len(repository.content) / 2, "the rest of the file stays where it is"
    assert "hf://datasets/org/waves/train/missing.hdf5" in problem
