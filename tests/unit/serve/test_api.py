"""The API: predictions equal the library's, comparisons equal the solvers', and files come from a table."""

from __future__ import annotations

import io
import json
import re
import socket
from importlib.metadata import version

import numpy as np
import pytest
import torch

import spectrakan as sk
from spectrakan.pde.darcy2d import DarcyParameters
from spectrakan.pde.darcy2d import solve as solve_darcy
from spectrakan.serve import guard, predict
from spectrakan.serve.app import Server
from spectrakan.serve.guard import MOST_BYTES, READ_SECONDS
from spectrakan.serve.predict import MOST_NUMBERS, SECONDS
from spectrakan.serve.scenes import SIZES, advance
from tools.pool import add_drops, averaged, still


def drop_in_the_pool(cells: int) -> tuple[torch.Tensor, torch.Tensor]:
    state = add_drops(still(1), torch.tensor([[[0.3, 0.6, 1.0, 0.006]]])).float()
    return state, averaged(state, cells)


def test_predictions_are_those_of_the_library(client):
    model = sk.from_pretrained("droplet2d-small").eval()
    _, start = drop_in_the_pool(32)
    expected = sk.rollout(model, start[:, None], 3).numpy()
    asked = {"model": "droplet2d-small", "inputs": start[:, None].tolist(), "horizon": 3}
    answer = client.post("/api/v1/predict", json=asked)
    assert answer.status_code == 200
    assert np.allclose(np.array(answer.json()["values"], np.float32), expected, atol=1e-6)
    packed = io.BytesIO()
    np.savez(packed, inputs=start[:, None].numpy(), horizon=np.array(3))
    headers = {"content-type": "application/x-npz", "accept": "application/x-npz"}
    answer = client.post("/api/v1/predict?model=droplet2d-small", content=packed.getvalue(), headers=headers)
    assert answer.status_code == 200
    assert np.allclose(np.load(io.BytesIO(answer.content))["values"], expected, atol=1e-6)


def test_the_pool_is_advanced_by_the_solver_and_by_the_model(client):
    fine, own = drop_in_the_pool(64)
    body = fine.numpy().tobytes() + own.numpy().tobytes()
    answer = client.post("/api/v1/compare?model=droplet2d-small&cells=64", content=body)
    assert answer.status_code == 200
    numbers = torch.from_numpy(np.frombuffer(answer.content, "<f4").copy())
    solved, given, attention = numbers.split([3 * 128**2, 3 * 64**2, 64**2])
    model = sk.from_pretrained("droplet2d-small").eval()
    with torch.no_grad():
        assert torch.allclose(given.view(64, 64, 3), model(own[:, None])[0], atol=1e-5)
        weights = model.attention(own[:, None])[0, 0] * 64**2
    assert torch.allclose(solved.view(128, 128, 3).double(), advance(fine.double(), 1)[0, 0], atol=1e-6)
    assert torch.allclose(attention.view(64, 64), weights, rtol=1e-3)
    assert float(attention.mean()) == pytest.approx(1.0, rel=1e-4)
    assert answer.headers["server-timing"].startswith("solver;dur=")


def test_rock_is_solved_and_predicted(client):
    rock = torch.where(torch.rand(32, 32, generator=torch.Generator().manual_seed(1)) > 0.5, 1.0, 0.1)
    answer = client.post("/api/v1/compare?model=darcy2d-small&cells=32", content=rock.numpy().tobytes())
    numbers = torch.from_numpy(np.frombuffer(answer.content, "<f4").copy()).view(3, 32, 32)
    expected = solve_darcy(rock[None, ..., None].double(), (0.0,), DarcyParameters())[0, 0, ..., 0]
    assert torch.allclose(numbers[0].double(), expected, rtol=1e-5)
    with torch.no_grad():
        model = sk.from_pretrained("darcy2d-small").eval()
        assert torch.allclose(numbers[1], model(rock[None, None, ..., None])[0, ..., 0], atol=1e-6)


def test_gas_keeps_its_mass_in_the_solver(client):
    points = torch.linspace(-1, 1, 129)[:-1]
    state = torch.stack([4 + torch.sin(torch.pi * points), 0.2 * torch.cos(torch.pi * points), 40 + 0 * points], -1)
    answer = client.post("/api/v1/compare?model=cns1d-small&cells=128", content=state.numpy().tobytes())
    solved, given = np.frombuffer(answer.content, "<f4").reshape(2, 20, 128, 3)
    assert np.allclose(solved[..., 0].mean(1), float(state[:, 0].mean()), rtol=1e-5)
    assert np.isfinite(given).all()


def test_runs_show_samples_curves_and_certificates(client):
    facts = client.get("/api/v1/models").json()
    assert facts["waves"]["kind"] == "run"
    assert facts["waves"]["certificate"] == {"kan": 1.5}
    assert facts["droplet2d-small"]["kind"] == "shipped"
    answer = client.get("/api/v1/runs/waves/samples/1")
    told = json.loads(answer.headers["x-shapes"])
    assert told["arrays"]["truth"] == [4, 16, 16, 1]
    numbers = np.frombuffer(answer.content, "<f4")
    sizes = np.cumsum([int(np.prod(shape)) for shape in told["arrays"].values()])
    assert sizes[-1] == len(numbers)
    _, truth, given, attention = np.split(numbers, sizes[:-1])
    assert told["relative_l2"] == pytest.approx(np.linalg.norm(given - truth) / np.linalg.norm(truth), rel=1e-4)
    assert attention.mean() == pytest.approx(1.0, rel=1e-4)
    inside = client.get("/api/v1/runs/waves/inside").json()
    assert len(inside["layers"]) == 2
    assert all(len(gate) == 4 for gate in inside["gates"].values())
    assert client.get("/api/v1/runs/waves/samples/2").status_code == 404


def test_the_document_describes_every_path(client):
    described = client.get("/api/openapi.json").json()["paths"]
    served = {route.path.replace(":int", "") for route in Server().routes()} - {"/", "/{file}", "/api/openapi.json"}
    assert set(described) == served


def test_the_document_states_the_limits_that_hold_and_every_reference_in_it_exists(client):
    document = client.get("/api/openapi.json").json()
    words = {name: each["description"] for name, each in document["components"]["responses"].items()}
    assert words["too_large"] == f"more than {MOST_BYTES} bytes or {MOST_NUMBERS} numbers"
    assert words["slow_body"] == f"the body took longer than {READ_SECONDS:g} s"
    assert words["busy"] == f"too busy, or longer than {SECONDS:g} s"
    cells = document["paths"]["/api/v1/compare"]["post"]["parameters"][1]
    assert cells["schema"]["enum"] == list(SIZES)
    assert document["info"]["version"] == version("spectrakan")
    for place in re.findall(r'"#/components/(\w+)/(\w+)"', json.dumps(document)):
        assert place[1] in document["components"][place[0]]


def test_pages_keep_to_themselves(client):
    page = client.get("/")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    for name in ("index.html", "style.css", "main.js", "pool.js", "surface.js", "404.html"):
        text = client.get(f"/{name}").text
        assert "http://" not in text.replace("http://www.w3.org/", "")
        assert "https://" not in text
    assert client.get("/nothing").status_code == 404
    assert "To the pool" in client.get("/nothing").text
    assert client.get("/healthz").json()["status"] == "ok"


def test_a_prediction_and_a_body_have_their_time(client, address, monkeypatch):
    monkeypatch.setattr(predict, "SECONDS", 0.0)
    _, start = drop_in_the_pool(32)
    asked = {"model": "droplet2d-small", "inputs": start[:, None].tolist(), "horizon": 3}
    answer = client.post("/api/v1/predict", json=asked)
    assert answer.status_code == 503
    assert "0 of 3 frames" in answer.json()["error"]
    monkeypatch.setattr(guard, "READ_SECONDS", 0.2)
    host, port = address.removeprefix("http://").split(":")
    head = f"POST /api/v1/predict HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=30) as stream:
        stream.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())  # and nothing after it
        assert stream.recv(100).startswith(b"HTTP/1.1 408 ")
