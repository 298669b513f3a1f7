"""`POST /api/v1/predict`: arrays in JSON or npz to predicted frames, within bounds on size and time.

JSON: {"model": name, "inputs": (B, history, *space, C) as nested lists, "params": (B, P), "horizon": n}
npz:  the same names as arrays, none of them objects; `model` may be given in the query instead
"""

import io
import json
import math
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from starlette.exceptions import HTTPException
from torch import Tensor

from spectrakan.data.decoding import decoding
from spectrakan.data.formats.archives import npz_arrays
from spectrakan.errors import DataFormatError, SpectraKANError
from spectrakan.models import Operator

MOST_NUMBERS = 2**20
"""Numbers in an input; in an output four times as many."""
MOST_UNPACKED = 2**24
"""Bytes that the members of an npz may unpack to."""
SECONDS = 20.0
"""Time that a prediction may take."""
NPZ = "application/x-npz"
KEYS = {"model", "inputs", "params", "horizon"}
REQUEST = Path("request.npz")
"""What messages call the file that is the body of a request."""


def parse_json(body: bytes) -> dict[str, Any]:
    """The request as a mapping, its arrays as float32."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "expected a JSON document") from None
    if not isinstance(document, dict) or document.keys() - KEYS or "inputs" not in document:
        raise HTTPException(422, f"expected an object with 'inputs' and only {', '.join(sorted(KEYS))}")
    for key in ("inputs", "params"):
        if document.get(key) is not None:
            document[key] = _array(key, document[key])
    return document


def parse_npz(body: bytes) -> dict[str, Any]:
    """The request as a mapping, read as npz files are; it is measured before memory is taken for it."""
    try:
        with decoding(REQUEST, kind="npz"):
            archive = zipfile.ZipFile(io.BytesIO(body))
        members = archive.infolist()
        if len(members) > len(KEYS) or sum(member.file_size for member in members) > MOST_UNPACKED:
            raise HTTPException(413, f"expected at most {len(KEYS)} arrays of {MOST_UNPACKED} bytes together")
        found: dict[str, Any] = dict(npz_arrays(REQUEST, archive))
    except DataFormatError as problem:
        raise HTTPException(400, str(problem)) from None
    if found.keys() - KEYS or "inputs" not in found:
        raise HTTPException(422, f"expected an array named 'inputs' and only {', '.join(sorted(KEYS))}")
    for key, array in found.items():
        plain = array.item() if array.size == 1 else None
        found[key] = _array(key, array) if key in ("inputs", "params") else plain
    return found


def predict(model: Operator, asked: Mapping[str, Any]) -> tuple[npt.NDArray[np.float32], float]:
    """Frames `(B, horizon, *space, C)` and the seconds that they took."""
    horizon, own = asked.get("horizon"), model.signature
    horizon = 1 if horizon is None else horizon
    if not isinstance(horizon, int) or isinstance(horizon, bool) or not 1 <= horizon <= 1000:
        raise HTTPException(422, f"expected a horizon from 1 to 1000, got {str(horizon)[:40]}")
    if horizon > 1 and not own.evolves:
        raise HTTPException(422, "this model maps one field to another; its horizon is 1")
    inputs = torch.from_numpy(asked["inputs"])
    params = None if asked.get("params") is None else torch.from_numpy(asked["params"])
    cells = math.prod(inputs.shape[2:-1]) if inputs.ndim > 3 else 1
    if len(inputs.shape) and inputs.shape[0] * horizon * cells * own.out_channels > 4 * MOST_NUMBERS:
        raise HTTPException(413, f"an answer may hold {4 * MOST_NUMBERS} numbers; ask for fewer samples or frames")
    begin = time.perf_counter()
    try:
        frames = _frames(model, inputs, params, horizon, begin)
    except SpectraKANError as problem:
        raise HTTPException(422, str(problem)) from None
    return frames.numpy(), time.perf_counter() - begin


@torch.no_grad()
def _frames(model: Operator, window: Tensor, params: Tensor | None, horizon: int, begin: float) -> Tensor:
    frames: list[Tensor] = []
    for _ in range(horizon):
        if time.perf_counter() - begin > SECONDS:
            raise HTTPException(
                503, f"a prediction may take {SECONDS:g} s; {len(frames)} of {horizon} frames were done"
            )
        frames.append(model(window, params=params))
        if model.signature.evolves:
            window = torch.cat([window[:, 1:], frames[-1][:, None]], dim=1)
    return torch.stack(frames, dim=1)


def as_npz(values: npt.NDArray[np.float32]) -> bytes:
    """An npz file with one array, `values`."""
    stream = io.BytesIO()
    np.savez(stream, values=values)
    return stream.getvalue()


def as_json(values: npt.NDArray[np.float32], model: str, seconds: float) -> bytes:
    """A JSON document; a prediction that is not finite has null in its place."""
    plain = values.astype(object) if not np.isfinite(values).all() else values
    if plain.dtype == object:
        plain[~np.isfinite(values)] = None
    return json.dumps({"model": model, "seconds": seconds, "values": plain.tolist()}).encode()


def _array(key: str, given: Any) -> npt.NDArray[np.float32]:
    try:
        array = np.asarray(given)
    except (ValueError, RecursionError):
        raise HTTPException(422, f"'{key}' must be nested lists of equal lengths") from None
    if array.dtype.kind not in "fiu":
        raise HTTPException(422, f"'{key}' must hold real numbers")
    if not 0 < array.size <= MOST_NUMBERS or array.ndim > 8:
        raise HTTPException(413, f"'{key}' may hold 1 to {MOST_NUMBERS} numbers, got {array.size}")
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(single).all():
        raise HTTPException(422, f"'{key}' must be finite")
    return single
