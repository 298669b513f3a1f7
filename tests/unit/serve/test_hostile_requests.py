"""A thousand hostile requests and fifty clients at once: right status codes, bounded memory, a living server."""

from __future__ import annotations

import io
import json
import random
import resource
import zipfile
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np

JSON = {"content-type": "application/json"}
NPZ = {"content-type": "application/x-npz"}
STILL = np.tile(np.array([1, 0, 0], "<f4"), 128**2 + 32**2).tobytes()
COMPARE = "/api/v1/compare?model=droplet2d-small&cells=32"


def packed(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inputs.npy", bytes(2**26))
    return stream.getvalue()


def huge_header() -> bytes:
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (2**40,)})
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("inputs.npy", member.getvalue())
    return stream.getvalue()


def asked(**change) -> bytes:
    return json.dumps({"model": "droplet2d-small", "inputs": [[[[[1.0, 0, 0]] * 8] * 8]], **change}).encode()


NAN_STATE = np.frombuffer(STILL, "<f4").copy()
NAN_STATE[7] = np.nan
DRY_STATE = np.frombuffer(STILL, "<f4").copy()
DRY_STATE[0] = -1
THIN_GAS = np.tile(np.array([0.001, 0, 500], "<f4"), 128).tobytes()  # a million of the solver's steps
HOSTILE = {
    "not json": ("POST", "/api/v1/predict", JSON, b"{" * 9, {400}),
    "deep json": ("POST", "/api/v1/predict", JSON, b"[" * 100_000, {400}),
    "json list": ("POST", "/api/v1/predict", JSON, b"[]", {422}),
    "nan": ("POST", "/api/v1/predict", JSON, asked(inputs=[[[[[float("nan")] * 3] * 8] * 8]]), {422}),
    "infinity": ("POST", "/api/v1/predict", JSON, asked(inputs=[[[[[1e39] * 3] * 8] * 8]]), {422}),
    "ragged": ("POST", "/api/v1/predict", JSON, asked(inputs=[[1, 2], [3]]), {422}),
    "text": ("POST", "/api/v1/predict", JSON, asked(inputs="abc"), {422}),
    "shape": ("POST", "/api/v1/predict", JSON, asked(inputs=[[1.0]]), {422}),
    "tiny grid": ("POST", "/api/v1/predict", JSON, asked(inputs=[[[[[1.0] * 3]]]]), {422}),
    "empty": ("POST", "/api/v1/predict", JSON, asked(inputs=[]), {413, 422}),
    "horizon 0": ("POST", "/api/v1/predict", JSON, asked(horizon=0), {422}),
    "horizon huge": ("POST", "/api/v1/predict", JSON, asked(horizon=10**9), {422}),
    "horizon true": ("POST", "/api/v1/predict", JSON, asked(horizon=True), {422}),
    "params": ("POST", "/api/v1/predict", JSON, asked(params=[[1.0]]), {422}),
    "unknown key": ("POST", "/api/v1/predict", JSON, asked(path="/etc/passwd"), {422}),
    "unknown model": ("POST", "/api/v1/predict", JSON, asked(model="../../etc/passwd"), {404}),
    "model list": ("POST", "/api/v1/predict", JSON, asked(model=["a"]), {404}),
    "content type": ("POST", "/api/v1/predict", {"content-type": "text/plain"}, asked(), {415}),
    "pickle type": ("POST", "/api/v1/predict", {"content-type": "application/python-pickle"}, b"\x80", {415}),
    "too large": ("POST", "/api/v1/predict", JSON, bytes(9 * 2**20), {413}),
    "not npz": ("POST", "/api/v1/predict?model=droplet2d-small", NPZ, b"PK\x03\x04" + bytes(50), {400}),
    "npz bomb": ("POST", "/api/v1/predict?model=droplet2d-small", NPZ, bomb(), {413}),
    "npz header": ("POST", "/api/v1/predict?model=droplet2d-small", NPZ, huge_header(), {400, 413, 422}),
    "npz objects": ("POST", "/api/v1/predict", NPZ, packed(inputs=np.array([{}], object)), {400, 422}),
    "npz path": ("POST", "/api/v1/predict", NPZ, packed(**{"../inputs": np.zeros(3)}), {422}),
    "npz complex": ("POST", "/api/v1/predict", NPZ, packed(inputs=np.zeros(3, complex)), {422}),
    "get predict": ("GET", "/api/v1/predict", {}, b"", {405}),
    "put": ("PUT", "/api/v1/compare", {}, b"", {405}),
    "short state": ("POST", COMPARE, {}, STILL[:-4], {422}),
    "odd bytes": ("POST", COMPARE, {}, STILL[:-1], {400}),
    "no state": ("POST", COMPARE, {}, b"", {422}),
    "nan state": ("POST", COMPARE, {}, NAN_STATE.tobytes(), {422}),
    "dry state": ("POST", COMPARE, {}, DRY_STATE.tobytes(), {422}),
    "thin gas": ("POST", "/api/v1/compare?model=cns1d-small&cells=128", {}, THIN_GAS, {422}),
    "cells": ("POST", "/api/v1/compare?model=droplet2d-small&cells=33", {}, STILL, {422}),
    "cells text": ("POST", "/api/v1/compare?model=droplet2d-small&cells=1e9", {}, STILL, {422}),
    "compare model": ("POST", "/api/v1/compare?model=%2e%2e%2f", {}, STILL, {404}),
    "host": ("GET", "/", {"host": "evil.example"}, b"", {421}),
    "host like ours": ("GET", "/", {"host": "127.0.0.1.evil.example"}, b"", {421}),
    "origin": ("POST", COMPARE, {"origin": "http://evil.example"}, STILL, {403}),
    "origin null": ("POST", COMPARE, {"origin": "null"}, STILL, {403}),
    "up": ("GET", "/..%2f..%2fapp.py", {}, b"", {404}),
    "absolute": ("GET", "//etc/passwd", {}, b"", {404}),
    "source": ("GET", "/app.py", {}, b"", {404}),
    "run": ("GET", "/api/v1/runs/..%2f..%2fetc/samples/0", {}, b"", {404}),
    "run shipped": ("GET", "/api/v1/runs/droplet2d-small/inside", {}, b"", {404}),
    "sample": ("GET", "/api/v1/runs/x/samples/-1", {}, b"", {404}),
    "long header": ("GET", "/healthz", {"x-long": "a" * 70_000}, b"", {400, 431}),
    "unknown api": ("GET", "/api/v2/x", {}, b"", {404}),
}


def test_a_thousand_hostile_requests_and_fifty_clients_at_once(address):
    drawn = random.Random(0)
    names = [name for name in HOSTILE if name not in ("too large", "npz bomb", "deep json")]
    order = [*HOSTILE, *(drawn.choice(names) for _ in range(1000 - len(HOSTILE)))]
    assert len(order) == 1000
    wrong: list[str] = []

    def send(part: list[str]) -> None:
        with httpx.Client(base_url=address, timeout=60) as client:
            for name in part:
                method, path, headers, body, expected = HOSTILE[name]
                try:
                    answer = client.request(method, path, headers=headers, content=body)
                except httpx.HTTPError as problem:
                    # A server may close the connection on a body that it will not read.
                    if name != "too large":
                        wrong.append(f"{name}: {problem!r}")
                    continue
                if answer.status_code not in expected:
                    wrong.append(f"{name}: {answer.status_code} {answer.text[:80]}")

    httpx.post(address + COMPARE, content=STILL, timeout=60)  # the model is read once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ThreadPoolExecutor(50) as pool:
        list(pool.map(send, [order[k::50] for k in range(50)]))
    assert not wrong, "\n".join(sorted(set(wrong)))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 600, f"{grown:.0f} MB more, clients included"
    assert httpx.get(address + "/healthz", timeout=10).status_code == 200
    answer = httpx.post(address + COMPARE, content=STILL, timeout=60)
    assert answer.status_code == 200
    found = np.frombuffer(answer.content, "<f4")[: 3 * 128**2].reshape(-1, 3)
    assert np.allclose(found, [1, 0, 0], atol=1e-6), "still water stays still"


def test_fifty_clients_are_served_or_told_to_wait(address):
    def ask(_: int) -> int:
        return httpx.post(address + COMPARE, content=STILL, timeout=120).status_code

    with ThreadPoolExecutor(50) as pool:
        codes = list(pool.map(ask, range(100)))
    assert set(codes) <= {200, 503}
    assert codes.count(200) >= 50
