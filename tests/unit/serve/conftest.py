"""A server on this machine and a client of it."""

from __future__ import annotations

import threading
import time

import httpx
import pytest
import torch
import uvicorn

import spectrakan as sk
from spectrakan.serve.app import build_app, server_config
from spectrakan.serve.shown import GivenRun


def small_run(name: str = "waves") -> GivenRun:
    """An untrained SpectraKAN with samples of its own, as a run."""
    generator = torch.Generator().manual_seed(0)
    values = torch.rand((4, 5, 16, 16, 1), generator=generator).numpy()
    data = sk.Trajectories.from_arrays(values, fields=("u",), boundary=("wall", "wall"), name=name)
    signature = sk.OperatorSignature(
        space_dims=2, history=1, in_channels=1, out_channels=1, boundary=("wall", "wall")
    )
    torch.manual_seed(0)
    model = sk.build_model("spectrakan", signature, width=8, num_modes=4, num_layers=2)
    windows = torch.from_numpy(values)
    model.fit_statistics(windows[:, :1], windows[:, 1:2])
    record = {"model": "spectrakan", "parameters": 1, "metrics": {"rmse": 0.1}, "train_seconds": 1.0}
    return GivenRun(name, name, model.eval(), data, [2, 3], record, {"kan": 1.5})


@pytest.fixture(scope="session")
def address():
    config = server_config(build_app([small_run()]), "127.0.0.1", 0)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def client(address: str):
    with httpx.Client(base_url=address, timeout=60) as made:
        yield made
