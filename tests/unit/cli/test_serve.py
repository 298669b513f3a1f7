"""The command that serves: what it binds to, whether it opens a browser, and which samples it shows of a run."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import spectrakan as sk
from spectrakan.cli import app
from spectrakan.cli.serve import given_run, serve
from spectrakan.data import write_dataset
from spectrakan.data.prepare import prepare

ADDRESS = "http://127.0.0.1:8123/"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run the command with a server that only says that it has started; what it was given, what was opened."""

    def start(*words: str) -> tuple[dict[str, object], list[str], str]:
        seen: dict[str, object] = {}
        opened: list[str] = []

        def served(runs, host, port, tell):
            seen.update(runs=runs, host=host, port=port)
            tell(ADDRESS)

        monkeypatch.setattr("spectrakan.serve.app.serve", served)
        monkeypatch.setattr("webbrowser.open", opened.append)
        monkeypatch.setattr("sys.argv", ["spectrakan", "serve", *words])
        with pytest.raises(SystemExit) as end:
            app.main()
        assert not end.value.code
        return seen, opened, capsys.readouterr().out

    return start


def test_it_binds_to_this_machine_and_opens_a_browser_unless_told_otherwise(started):
    seen, opened, told = started()
    assert (seen["host"], seen["port"], seen["runs"]) == ("127.0.0.1", 8000, [])
    assert opened == [ADDRESS]
    assert ADDRESS in told
    seen, opened, told = started("--no-browser", "--port", "8123", "--host", "0.0.0.0")  # noqa: S104
    assert (seen["host"], seen["port"], opened) == ("0.0.0.0", 8123, [])  # noqa: S104
    assert ADDRESS in told


def test_missing_packages_are_named_with_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(sk.errors.ConfigError, match=r"needs uvicorn: pip install 'spectrakan\[serve\]'"):
        serve()


def test_a_port_that_is_taken_is_said_before_any_model_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("spectrakan.serve.app.build_app", None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(sk.errors.ConfigError, match=f"port {port} of 127.0.0.1: .*in use; --port 0"):
            serve(port=port)


def test_a_run_is_shown_on_its_test_samples_or_on_data_of_your_own(tmp_path: Path, started):
    data = sk.generate("diffusion_reaction1d", num_samples=8, resolution=32, seed=0)
    small = ["training.epochs=1", "model.width=4", "data.split.train=0.5", "data.split.test=0.25"]
    run = sk.train(data=data, output=tmp_path / "run", overrides=[*small, "data.split.validation=0.25"])
    other = sk.generate("diffusion_reaction1d", num_samples=3, resolution=48, seed=1)
    write_dataset(tmp_path / "mine.h5", other)
    own = given_run(tmp_path / "run", tmp_path / "mine.h5", {})
    assert len(own.samples) == 3
    parts, error = own.sample(2)
    history = run.model.signature.history
    assert np.array_equal(parts["input"], np.asarray(other.values)[2, :history].astype(np.float32))
    expected = sk.rollout(run.model, torch.from_numpy(parts["input"])[None], len(parts["truth"]))[0].numpy()
    assert np.allclose(parts["prediction"], expected, atol=1e-5)
    assert error == pytest.approx(
        np.linalg.norm(expected - parts["truth"]) / np.linalg.norm(parts["truth"]), rel=1e-3
    )
    seen, _, _ = started(str(tmp_path / "run"))
    (held_out,) = seen["runs"]
    assert held_out.name == "run"
    assert len(held_out.samples) == 2
    assert held_out.certificate is None


def test_runs_of_equal_data_have_them_solved_once(tmp_path: Path, started, monkeypatch: pytest.MonkeyPatch):
    small = ["training.epochs=1", "model.width=4", "data.num_samples=4", "data.test_samples=2"]
    for name, cells in (("one", 16), ("else", 24)):
        sk.train("diffusion_reaction1d", output=tmp_path / name, overrides=[*small, f"data.resolution={cells}"])
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    solved = []
    monkeypatch.setattr(
        "spectrakan.cli.subject.prepare", lambda *words, **more: solved.append(words) or prepare(*words, **more)
    )
    seen, _, _ = started(*(str(tmp_path / name) for name in ("one", "two", "else")))
    one, two, other = seen["runs"]
    assert len(solved) == 2
    assert two.trajectories is one.trajectories
    assert (one.trajectories.grid.shape, other.trajectories.grid.shape) == ((16,), (24,))
