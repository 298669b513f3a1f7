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
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.errors import SpectraKANError
from spectrakan.models import Operator
from spectrakan.serve.guard import Refused

MOST_NUMBERS = 2**20
"""Numbers in an input; in an output four times as many."""
MOST_UNPACKED = 2**24
"""Bytes that the members of an npz may unpack to."""
SECONDS = 20.0
"""Time that a prediction may take."""
NPZ = "application/x-npz"
KEYS = {"model", "inputs", "params", "horizon"}


def parse_json(body: bytes) -> dict[str, Any]:
    """The request as a mapping, its arrays as float32."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "expected a JSON document") from None
    if not isinstance(document, dict) or document.keys() - KEYS or "inputs" not in document:
        raise Refused(422, f"expected an object with 'inputs' and only {', '.join(sorted(KEYS))}")
    for key in ("inputs", "params"):
        if document.get(key) is not None:
            document[key] = _array(key, document[key])
    return document


def parse_npz(body: bytes) -> dict[str, Any]:
    """The request as a mapping; every member is measured before memory is taken for it."""
    found: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            members = archive.infolist()
            if len(members) > len(KEYS) or sum(member.file_size for member in members) > MOST_UNPACKED:
                raise Refused(413, f"expected at most {len(KEYS)} arrays of {MOST_UNPACKED} bytes together")
            for member in members:
                key = member.filename.removesuffix(".npy")
                if key not in KEYS or key in found:
                    raise Refused(422, f"expected arrays named {', '.join(sorted(KEYS))}, each once")
                with archive.open(member) as stream:
                    found[key] = _member(key, io.BytesIO(stream.read(MOST_UNPACKED)))
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError, OverflowError):
        raise Refused(400, "expected an npz file of plain arrays") from None
    if "inputs" not in found:
        raise Refused(422, "expected an array named 'inputs'")
    for key in ("inputs", "params"):
        if key in found:
            found[key] = _array(key, found[key])
    for key in ("model", "horizon"):
        if key in found:
            found[key] = found[key].item() if found[key].size == 1 else None
    return found


def predict(model: Operator, asked: Mapping[str, Any]) -> tuple[npt.NDArray[np.float32], float]:
    """Frames `(B, horizon, *space, C)` and the seconds that they took."""
    horizon, own = asked.get("horizon"), model.signature
    horizon = 1 if horizon is None else horizon
    if not isinstance(horizon, int) or isinstance(horizon, bool) or not 1 <= horizon <= 1000:
        raise Refused(422, f"expected a horizon from 1 to 1000, got {str(horizon)[:40]}")
    if horizon > 1 and not own.evolves:
        raise Refused(422, "this model maps one field to another; its horizon is 1")
    inputs = torch.from_numpy(asked["inputs"])
    params = None if asked.get("params") is None else torch.from_numpy(asked["params"])
    cells = math.prod(inputs.shape[2:-1]) if inputs.ndim > 3 else 1
    if len(inputs.shape) and inputs.shape[0] * horizon * cells * own.out_channels > 4 * MOST_NUMBERS:
        raise Refused(413, f"an answer may hold {4 * MOST_NUMBERS} numbers; ask for fewer samples or frames")
    begin = time.perf_counter()
    try:
        frames = _frames(model, inputs, params, horizon, begin)
    except SpectraKANError as problem:
        raise Refused(422, str(problem)) from None
    return frames.numpy(), time.perf_counter() - begin


@torch.no_grad()
def _frames(model: Operator, window: Tensor, params: Tensor | None, horizon: int, begin: float) -> Tensor:
    frames: list[Tensor] = []
    for _ in range(horizon):
        if time.perf_counter() - begin > SECONDS:
            raise Refused(503, f"a prediction may take {SECONDS:g} s; {len(frames)} of {horizon} frames were done")
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
        raise Refused(422, f"'{key}' must be nested lists of equal lengths") from None
    if array.dtype.kind not in "fiu":
        raise Refused(422, f"'{key}' must hold real numbers")
    if not 0 < array.size <= MOST_NUMBERS or array.ndim > 8:
        raise Refused(413, f"'{key}' may hold 1 to {MOST_NUMBERS} numbers, got {array.size}")
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(single).all():
        raise Refused(422, f"'{key}' must be finite")
    return single


def _member(key: str, stream: io.BytesIO) -> npt.NDArray[Any]:
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    if dtype.hasobject or dtype.kind not in "fiuU" or min(shape, default=0) < 0:
        raise Refused(422, f"'{key}' must hold plain numbers")
    if math.prod(shape) * dtype.itemsize > stream.getbuffer().nbytes - stream.tell():
        raise Refused(400, f"'{key}' declares more numbers than it has")
    stream.seek(0)
    return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
