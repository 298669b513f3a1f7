"""`POST /api/v1/compare`: the solver and a model from the same state, side by side, with the time of each.

A body is float32 in the byte order of the browser (little-endian): first what the solver starts from, then what the
model starts from. The answer is the solver's result, the model's, and its attention, in the same way.

    droplet2d   128² x 3 and n² x 3           -> one frame of each, n² weights
    darcy2d     n² (the rock)                 -> both pressures, n² weights
    cns1d       128 x 3 (the first state)     -> 20 frames of each
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from starlette.exceptions import HTTPException
from torch import Tensor

from spectrakan.errors import SpectraKANError
from spectrakan.models import Operator
from spectrakan.models.rollout import rollout
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.pde.cns1d import CNS1DParameters
from spectrakan.pde.cns1d import solve as solve_gas
from spectrakan.pde.darcy2d import DarcyParameters
from spectrakan.pde.darcy2d import solve as solve_darcy
from spectrakan.pde.droplet2d import DropletParameters
from spectrakan.pde.droplet2d import solve as solve_water

SIZES = (32, 64, 128)
"""Cells along an axis that the page offers."""
POOL_CELLS, POOL_FRAME = 128, 0.02
"""Cells of the pool's solver along each axis, however few the model has: its viscosity grows with the cell."""
GAS_CELLS, GAS_FRAMES, GAS_FRAME = 128, 20, 0.05
LARGEST = 1e4
"""A state with larger numbers is refused."""

Answer = tuple[list[Tensor], dict[str, float]]


def compare(model: Operator, task: str, cells: int, body: bytes) -> tuple[bytes, dict[str, float]]:
    """The answer's bytes, and the milliseconds of `solver` and `model`."""
    if task not in SCENES:
        raise HTTPException(
            422, f"the page compares {', '.join(SCENES)} with their solvers, this model learnt '{task}'"
        )
    if cells not in SIZES:
        raise HTTPException(422, f"expected cells to be one of {', '.join(map(str, SIZES))}, got {cells}")
    if len(body) % 4:
        raise HTTPException(400, "expected float32 numbers")
    numbers = torch.from_numpy(np.frombuffer(body, "<f4").astype(np.float32))
    if not bool(torch.isfinite(numbers).all()) or float(numbers.abs().max() if len(numbers) else 0) > LARGEST:
        raise HTTPException(422, f"expected finite numbers up to {LARGEST:g}")
    try:
        with torch.inference_mode():
            parts, times = SCENES[task](model, cells, numbers)
    except SpectraKANError as problem:
        raise HTTPException(422, str(problem)) from None
    return b"".join(part.contiguous().float().numpy().astype("<f4").tobytes() for part in parts), times


def watched(model: Operator, x: Tensor) -> tuple[Tensor, Tensor]:
    """A prediction and the attention weights of the same pass, times the number of cells: 1 is uniform."""
    seen: list[Tensor] = []

    def keep(module: Any, arguments: Any, output: Any) -> None:
        seen.append(module.weights(*arguments) * arguments[1][0, 0].numel())

    gml = model.gml if isinstance(model, SpectraKAN) else None
    handle = None if gml is None else gml.register_forward_hook(keep)
    try:
        given = model(x)
    finally:
        if handle is not None:
            handle.remove()
    return given, seen[0] if seen else torch.ones(x.shape[2:-1])


def advance(state: Tensor, frames: int) -> Tensor:
    """The next frames of a pool `(B, n, n, 3)` by its solver, `(B, frames, n, n, 3)`."""
    return solve_water(state, [POOL_FRAME * (index + 1) for index in range(frames)], DropletParameters())


def _water(model: Operator, cells: int, numbers: Tensor) -> Answer:
    fine = 3 * POOL_CELLS**2
    _require(numbers, fine + 3 * cells**2)
    state = numbers[:fine].view(1, POOL_CELLS, POOL_CELLS, 3)
    own = numbers[fine:].view(1, 1, cells, cells, 3)
    _positive(state[..., 0], own[..., 0])
    return _timed(lambda: advance(state.double(), 1)[:, 0], lambda: watched(model, own))


def _rock(model: Operator, cells: int, numbers: Tensor) -> Answer:
    _require(numbers, cells**2)
    medium = numbers.view(1, cells, cells, 1)
    _positive(medium)
    return _timed(
        lambda: solve_darcy(medium.double(), (0.0,), DarcyParameters()), lambda: watched(model, medium[:, None])
    )


def _gas(model: Operator, cells: int, numbers: Tensor) -> Answer:
    _require(numbers, 3 * GAS_CELLS)
    state = numbers.view(1, GAS_CELLS, 3)
    _positive(state[..., 0], state[..., 2])
    speed = state[..., 1].abs() + (CNS1DParameters().gamma * state[..., 2] / state[..., 0]).sqrt()
    if float(state.max()) > 500 or float(state[..., 0].min()) < 0.1 or float(speed.max()) > 60:
        raise HTTPException(
            422, "expected a density of at least 0.1, numbers up to 500, and waves of a speed up to 60"
        )
    times = [GAS_FRAME * (index + 1) for index in range(GAS_FRAMES)]
    return _timed(
        lambda: solve_gas(state, times, CNS1DParameters()), lambda: [rollout(model, state[:, None], GAS_FRAMES)]
    )


def _require(numbers: Tensor, expected: int) -> None:
    if len(numbers) != expected:
        raise HTTPException(422, f"expected {expected} numbers, got {len(numbers)}")


def _positive(*fields: Tensor) -> None:
    if any(float(field.min()) <= 0 for field in fields):
        raise HTTPException(422, "expected positive depth, permeability, density and pressure in every cell")


def _timed(solve: Callable[[], Tensor], predict: Callable[[], Sequence[Tensor]]) -> Answer:
    """What the solver gives, then what the model gives, and the milliseconds of each."""
    begin = time.perf_counter()
    solved = solve()
    middle = time.perf_counter()
    given = predict()
    return [solved, *given], {"solver": 1e3 * (middle - begin), "model": 1e3 * (time.perf_counter() - middle)}


SCENES: dict[str, Callable[[Operator, int, Tensor], Answer]] = {"droplet2d": _water, "darcy2d": _rock, "cns1d": _gas}
