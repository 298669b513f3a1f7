"""Repositories of the Hub against a local server that speaks the part of its API that is used here."""

from __future__ import annotations

import base64
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

import pytest
import torch
import yaml

import spectrakan as sk
from spectrakan.models import hub

pytest.importorskip("huggingface_hub")

RECORD: dict[str, Any] = {
    "task": "waves", "metrics": {"rmse": 0.25, "relative_l2": 0.5}, "resolution": [32], "num_samples": 30,
    "seed": 3, "parameters": 1234, "train_seconds": 12.0, "horizon": 7,
}  # fmt: skip


class Repository(BaseHTTPRequestHandler):
    """One repository: its commits as dictionaries of files, and the branches that point to them."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str]
    requests: list[str]

    def log_message(self, *_: Any) -> None: ...

    def _send(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.requests.append(f"POST {self.path}")
        if self.path == "/api/repos/create":
            made = {"url": f"http://{self.headers['Host']}/org/waves"}
            return self._send(200, json.dumps(made).encode(), Content_Type="application/json")
        if "/preupload/" in self.path:
            asked = json.loads(body)["files"]
            modes = [{"path": entry["path"], "uploadMode": "regular", "shouldIgnore": False} for entry in asked]
            return self._send(200, json.dumps({"files": modes}).encode(), Content_Type="application/json")
        if "/branch/" in self.path:
            self.branches.setdefault(self.path.rsplit("/", 1)[1], self.branches.get("main", ""))
            return self._send(200, b"{}", Content_Type="application/json")
        if self.path == "/api/validate-yaml":  # of the card
            head = yaml.safe_load(json.loads(body)["content"].split("---")[1])
            return self._send(200 if head["library_name"] else 400, b"{}", Content_Type="application/json")
        branch = re.search(r"/commit/([^?/]+)", self.path)[1]
        files = dict(self.commits.get(self.branches.get(branch, ""), {}))
        for line in body.decode().splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
        commit = hashlib.sha1(body).hexdigest()  # noqa: S324 - a name, as git's
        self.commits[commit], self.branches[branch] = files, commit
        answer = {"commitUrl": f"http://{self.headers['Host']}/org/waves/commit/{commit}", "commitOid": commit}
        return self._send(200, json.dumps(answer).encode(), Content_Type="application/json")

    def do_GET(self) -> None:
        self.requests.append(f"{self.command} {self.path}")
        found = re.fullmatch(r"/org/waves/resolve/([^/]+)/(\S+)", self.path)
        commit = found and (found[1] if found[1] in self.commits else self.branches.get(found[1]))
        content = commit and self.commits[commit].get(found[2])
        if content is None:
            return self._send(404, X_Error_Code="EntryNotFound" if commit else "RevisionNotFound")
        tag = hashlib.sha256(content).hexdigest()
        return self._send(200, content, ETag=f'"{tag}"', X_Repo_Commit=commit)

    def do_HEAD(self) -> None:
        self.do_GET()


@pytest.fixture
def server() -> Iterator[tuple[str, type[Repository]]]:
    kind = type("Fresh", (Repository,), {"commits": {}, "branches": {}, "requests": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}", kind
    running.shutdown()
    running.server_close()


def made(seed: int) -> sk.models.Operator:
    torch.manual_seed(seed)
    signature = sk.OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1, boundary=("periodic",))
    model = sk.build_model("spectrakan", signature, width=4, num_layers=1, token_width=4)
    frames = 300 + torch.randn(4, 3, 16, 1)
    model.fit_statistics(frames[:, :2], frames[:, 2:])
    return model


def in_process(program: str, server: str, home: Path, **more: str) -> str:
    """Run a program whose huggingface_hub talks to the server alone: it reads its environment when imported."""
    known = {"HF_ENDPOINT": server, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    environment = {**os.environ, **known, **more, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import torch, spectrakan as sk\n" + program],
        env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_round_trip_is_bit_exact_also_by_revision_and_offline(server: Any, tmp_path: Path):
    address, repository = server
    first, second = made(0), made(1)
    first.save_pretrained(tmp_path / "first")
    second.save_pretrained(tmp_path / "second")
    push = (
        f"import json\nrecord = json.loads('''{json.dumps(RECORD)}''')\n"
        "for name in ('first', 'second'):\n"
        f"    model = sk.from_pretrained('{tmp_path}/' + name)\n"
        "    print(model.push_to_hub('org/waves', record=record, token='secret'))\n"
    )
    old = in_process(push, address, tmp_path / "home").split()[0].rsplit("/", 1)[1]
    files = repository.commits[repository.branches["main"]]
    assert set(files) == {"manifest.json", "model.json", "weights.safetensors", "README.md"}
    load = (
        "def same(name, **options):\n"
        "    here, there = sk.from_pretrained(f'{FOLDER}/' + name), sk.from_pretrained('org/waves', **options)\n"
        "    a, b = here.state_dict(), there.state_dict()\n"
        "    assert a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a), name\n"
        "    x = 300 + torch.randn(2, 2, 24, 1)\n"
        "    assert torch.equal(here(x), there(x))\n"
    ).replace("{FOLDER}", str(tmp_path))
    in_process(load + f"same('second')\nsame('first', revision='{old}')", address, tmp_path / "home")
    asked = len(repository.requests)
    in_process(load + f"same('first', revision='{old}', local_files_only=True)", address, tmp_path / "home")
    in_process(load + "same('second')", address, tmp_path / "home", HF_HUB_OFFLINE="1")
    assert len(repository.requests) == asked, "offline loading asked the server"


def test_changed_bytes_and_missing_repositories_are_refused(server: Any, tmp_path: Path):
    address, repository = server
    made(0).save_pretrained(tmp_path / "model")
    in_process(f"sk.from_pretrained('{tmp_path}/model').push_to_hub('org/waves', token='t')", address, tmp_path / "a")
    files = repository.commits[repository.branches["main"]]
    *kept, last = files["weights.safetensors"]
    files["weights.safetensors"] = bytes([*kept, last ^ 1])
    refused = (
        "try:\n    sk.from_pretrained('{}', **{})\n"
        "except sk.errors.DataFormatError as problem:\n    print(problem)\nelse:\n    raise SystemExit('loaded')\n"
    )
    assert "SHA-256" in in_process(refused.format("org/waves", {}), address, tmp_path / "b")
    assert "cannot fetch manifest.json" in in_process(refused.format("org/other", {}), address, tmp_path / "b")
    nowhere = refused.format("org/waves", {"revision": "missing"})
    assert "at 'missing'" in in_process(nowhere, address, tmp_path / "b")


def test_the_card_holds_the_record_s_scores():
    card = hub.model_card(made(0), RECORD)
    head = yaml.safe_load(card.split("---")[1])
    scores = head["model-index"][0]["results"][0]["metrics"]
    assert {entry["type"]: entry["value"] for entry in scores} == RECORD["metrics"]
    assert head["library_name"] == "spectrakan"
    assert "30 samples of `waves` at 32 cells" in card
    assert "| rmse | 0.25 |" in card
    assert "No record" in hub.model_card(made(0))


@pytest.mark.parametrize(
    ("name", "expected"), [("org/name", True), ("name", False), ("a/b/c", False), ("./a", False)]
)
def test_what_counts_as_a_repository(name: str, expected: bool):
    assert hub.is_repository(name) is expected


def test_a_folder_wins_over_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    made(0).save_pretrained(tmp_path / "org" / "name")
    assert sk.from_pretrained("org/name").name == "spectrakan"


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(sk.errors.ConfigError, match=r"spectrakan\[hub\]"):
        sk.from_pretrained("org/name")
