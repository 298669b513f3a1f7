"""Work on a cluster of real worker processes gives the same files and records, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.archive import Archive
from experiments.campaign import Execution, as_they_end, run_cells
from experiments.cells import Cell
from spectrakan.cli.cluster import ClusterArray, connected
from spectrakan.cli.generate import generate
from spectrakan.data.files import write_dataset
from spectrakan.data.generate import generate as solved
from spectrakan.errors import ConfigError, RunError

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # dask's own, about sockets and ports
MEASURED = ("train_seconds", "peak_memory_mb")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with connected("local:2") as found:
        yield found


def slow_square(number: int) -> int:
    time.sleep(0.5)
    if number == 3:
        raise ValueError("three")
    return number**2


@pytest.mark.parametrize(
    ("problem", "frames", "params"),
    [
        ("cns1d", 4, {"eta": (0.01, 0.1)}),
        ("diffusion_reaction1d", 5, {"nu": (0.1, 1.0)}),
        ("darcy2d", None, {}),
        ("shallow_water2d", 4, {}),
        ("droplet2d", 4, {}),
    ],
)
def test_files_made_by_workers_are_the_same_bytes(client, monkeypatch, tmp_path: Path, problem, frames, params):
    monkeypatch.setattr("spectrakan.fields.trajectories.BLOCK_BYTES", 4 * 16**2 * 3 * 8)  # several blocks
    made = solved(problem, 11, 16, frames=frames, params=params, dtype=None)
    told: list[tuple[int, int]] = []
    array = ClusterArray(client, made.values, lambda done, total: told.append((done, total)))
    alone, shared = tmp_path / "alone.h5", tmp_path / "shared.h5"
    write_dataset(alone, made)
    write_dataset(shared, replace(made, values=array))
    assert alone.read_bytes() == shared.read_bytes()
    assert told[-1] == (11, 11)
    np.testing.assert_allclose(array[3:9, 0], made.values[3:9, 0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(array[4], made.values[4], rtol=1e-10, atol=1e-12)


def test_the_command_takes_a_cluster(tmp_path: Path, capsys):
    for name, cluster in (("alone.h5", ""), ("shared.h5", "local:2")):
        generate("droplet2d", [], 6, 16, 3, 0, tmp_path / name, cluster=cluster)
    assert (tmp_path / "alone.h5").read_bytes() == (tmp_path / "shared.h5").read_bytes()
    assert "6 samples of droplet2d" in capsys.readouterr().out


def test_work_of_a_killed_worker_is_done_again_and_failures_are_told(client):
    found = as_they_end(client, slow_square, range(8))
    results = dict([next(found)])
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    results |= dict(found)
    assert isinstance(results.pop(3), ValueError)
    assert results == {number: number**2 for number in range(8) if number != 3}


def test_wrong_addresses_are_told(monkeypatch):
    for address in ("local", "local:0", "local:two", "head:8786"):
        with pytest.raises(ConfigError, match="takes local:N or the address"), connected(address):
            pass
    monkeypatch.setattr("spectrakan.cli.cluster.SECONDS_TO_JOIN", 1)
    with pytest.raises(RunError, match="no scheduler answers at tcp"), connected("tcp://127.0.0.1:9"):
        pass


@pytest.mark.slow
def test_a_killed_worker_costs_only_its_cell(client, tmp_path: Path):
    cells = [Cell("main", "smoke", "darcy2d", model, overrides=("training.epochs=40",)) for model in ("fno", "ffno")]
    alone, shared = (Archive(tmp_path / name, tmp_path / name / "cache", "smoke") for name in ("alone", "shared"))
    assert len(run_cells(cells, alone, Execution(jobs=1)).done) == 2
    stop = threading.Event()
    killer = threading.Thread(target=_kill_a_worker, args=(client, shared, stop))
    killer.start()
    told: list[str] = []
    outcome = run_cells(cells, shared, Execution(tell=told.append, client=client))
    killer.join()
    assert stop.is_set(), "a worker was killed while cells were trained"
    assert sorted(outcome.done) == sorted(cell.name for cell in cells)
    assert not outcome.failed
    assert sum("validation relative_l2" in line for line in told) == 2
    for cell in cells:
        one, other = ({**archive.record(cell), **dict.fromkeys(MEASURED)} for archive in (alone, shared))
        for record in (one, other):
            record["details"].pop("train_wall_seconds")
        assert one == other


def _kill_a_worker(client: Any, archive: Archive, stop: threading.Event) -> None:
    """Kill one as soon as a cell has started to train."""
    while not list(archive.cache.glob("runs/**/log.jsonl")):
        time.sleep(0.1)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    stop.set()
