"""Training, calibration and test data of the shipped models, all made by the library's solvers.

A set is a mapping from cells per axis to frames `(samples, 1 + steps, *space, channel)`: an input and what follows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import torch
from pool import add_drops, averaged, still
from safetensors.torch import load_file, save_file
from torch import Tensor

from spectrakan.numerics.random_field import log_uniform_draws, uniform_draws
from spectrakan.pde.cns1d import CNS1DParameters
from spectrakan.pde.cns1d import sample as draw_gas
from spectrakan.pde.cns1d import solve as solve_gas
from spectrakan.pde.darcy2d import DarcyParameters, draw_coefficient
from spectrakan.pde.darcy2d import solve as solve_darcy
from spectrakan.serve.scenes import advance

Frames = dict[int, Tensor]
SEGMENT = 8
"""Frames of the pool between touches in the training data."""
GAS_FRAME, GAS_FRAMES = 0.05, 20


def random_drops(batch: int, most: int, generator: torch.Generator, low: float = 0.1) -> Tensor:
    """Up to `most` drops anywhere: heights log-uniform to 2.2, widths log-uniform on [0.002, 0.012]."""
    shape = (batch, most)
    place = uniform_draws((batch, most, 2), 0.0, 1.0, generator)
    height = log_uniform_draws(shape, low, 2.2, generator)
    width = log_uniform_draws(shape, 0.002, 0.012, generator)
    count = torch.randint(1, most + 1, (batch, 1), generator=generator)
    height = torch.where(torch.arange(most) < count, height, 0.0)
    return torch.cat([place, height[..., None], width[..., None]], dim=-1)


def moving_pools(batch: int, generator: torch.Generator) -> Tensor:
    """Pools that drops fell into before and fall into now, `(batch, 128, 128, 3)`: half of them in motion."""
    level = uniform_draws((batch,), 0.9, 1.1, generator)
    state = add_drops(still(batch, level), random_drops(batch, 4, generator))
    half = batch // 2
    if half:
        earlier = advance(state[:half], 5)[:, -1]
        state = torch.cat([add_drops(earlier, random_drops(half, 3, generator)), state[half:]])
    return state


def touched_pools(batch: int, segments: int, seed: int) -> list[Tensor]:
    """Trajectories with touches between segments: `segments` tensors `(batch, 1 + SEGMENT, 128, 128, 3)`.

    Two of three pools are touched at the start of a segment, by one to three drops at once.
    """
    generator = torch.Generator().manual_seed(seed)
    state, made = moving_pools(batch, generator), []
    for _ in range(segments):
        frames = advance(state, SEGMENT)
        made.append(torch.cat([state[:, None], frames], dim=1))
        touch = random_drops(batch, 3, generator)
        touch[..., 2] *= torch.rand((batch, 1), generator=generator, dtype=torch.float64) < 2 / 3
        state = add_drops(frames[:, -1], touch)
    return made


def fresh_pools(pools: int, steps: int) -> Frames:
    """Fresh states and the frames after them: all on 32² cells, a fifth on 64², a twentieth on 128²."""
    generator = torch.Generator().manual_seed(10_000)
    made: dict[int, list[Tensor]] = {32: [], 64: [], 128: []}
    for _ in range(pools // 20):
        state = moving_pools(20, generator)
        frames = torch.cat([state[:, None], advance(state, steps)], dim=1)
        for cells, count in ((32, 20), (64, 4), (128, 1)):
            made[cells].append(averaged(frames[-count:], cells).float())
    return {cells: torch.cat(parts) for cells, parts in made.items()}


def kept(folder: Path, make: Callable[[], Frames]) -> Frames:
    """A set that is made once and then read from a file."""
    path = folder.with_suffix(".safetensors")
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        save_file({str(cells): frames.contiguous() for cells, frames in make().items()}, draft)
        draft.rename(path)
    found = load_file(path)
    return {int(cells): found[cells] for cells in sorted(found, key=int)}


def water_data(pools: int, seed: int, segments: int = 5, fine: int = 8) -> Frames:
    """Training windows on 32² and 64² cells, and on 128² from one of `fine` pools."""
    made: dict[int, list[Tensor]] = {32: [], 64: [], 128: []}
    for index in range(pools // 20):
        for segment in touched_pools(20, segments, seed + index):
            for cells in (32, 64):
                made[cells].append(averaged(segment, cells).float())
            made[128].append(segment[: 20 // fine].float())
    return {cells: torch.cat(parts) for cells, parts in made.items()}


def rock_data(samples: int, seed: int) -> Frames:
    """Media of bumps, of Gaussian fields and of painted strokes, with their pressure, on 64² and 32² cells."""
    made: Frames = {}
    for cells, count in ((64, samples), (32, samples // 2)):
        generator = torch.Generator().manual_seed(seed + cells)
        third = count // 3
        shape, plain = (cells, cells), DarcyParameters()
        media = torch.cat(
            [
                draw_coefficient(count - 2 * third, shape, plain, generator),
                gaussian(third, cells, generator),
                painted(third, cells, generator),
            ]
        )
        pressure = solve_darcy(media, (0.0,), plain)
        made[cells] = torch.stack([media, pressure[:, 0]], dim=1).float()
    return made


def gaussian(samples: int, cells: int, generator: torch.Generator, waves: int = 24) -> Tensor:
    """Rock that is open where a Gaussian field of covariance (-Laplace + 9)^-2, Neumann, is positive."""
    points = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    order = torch.arange(waves, dtype=torch.float64)
    cosines = torch.cos(math.pi * order[:, None] * points)
    spread = 1 / (math.pi**2 * (order[:, None].square() + order.square()) + 9)
    spread[0, 0] = 0.0
    drawn = torch.randn((samples, waves, waves), generator=generator, dtype=torch.float64) * spread
    fields = torch.einsum("skl,kx,ly->sxy", drawn, cosines, cosines)
    return torch.where(fields > 0, 1.0, 0.1).to(torch.float64)[..., None]


def painted(samples: int, cells: int, generator: torch.Generator) -> Tensor:
    """Strokes of a round brush over open or tight rock, `(samples, cells, cells, 1)`."""
    points = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    media = []
    for _ in range(samples):
        ground = float(torch.rand((), generator=generator) < 0.5)
        medium = torch.full((cells, cells), ground, dtype=torch.float64)
        for _ in range(int(torch.randint(0, 6, (), generator=generator))):
            begin, end = torch.rand((2, 2), generator=generator, dtype=torch.float64)
            radius = 0.03 + 0.09 * float(torch.rand((), generator=generator))
            colour = float(torch.rand((), generator=generator) < 0.3) if ground else 1.0
            colour = colour if ground else float(torch.rand((), generator=generator) < 0.7)
            along = (end - begin) / ((end - begin).square().sum() + 1e-12)
            x, y = points[:, None] - begin[0], points[None, :] - begin[1]
            share = (x * along[0] + y * along[1]).clamp(0, 1)
            away = (x - share * (end - begin)[0]) ** 2 + (y - share * (end - begin)[1]) ** 2
            medium = torch.where(away < radius**2, torch.tensor(colour, dtype=torch.float64), medium)
        media.append(0.1 + 0.9 * medium)
    return torch.stack(media)[..., None]


def gas_data(samples: int, seed: int) -> Frames:
    """The task's states and smoother, weaker ones, `GAS_FRAMES` frames after each, on 128 cells."""
    generator = torch.Generator().manual_seed(seed)
    start = draw_gas(samples, (128,), CNS1DParameters(), generator)
    weak = torch.rand((samples, 1, 1), generator=generator, dtype=torch.float64).clamp_min(0.05)
    weak = torch.where(torch.rand((samples, 1, 1), generator=generator) < 0.5, weak, torch.ones(()))
    mean = start.mean(1, keepdim=True)
    start = mean + weak * (start - mean)
    times = [GAS_FRAME * (index + 1) for index in range(GAS_FRAMES)]
    later = solve_gas(start, times, CNS1DParameters())
    return {128: torch.cat([start[:, None], later], dim=1).float()}


def largest(frames: Frames) -> dict[str, list[list[float]]]:
    """Smallest and largest value of each channel over a set, what the page calls the training range."""
    every = [part.flatten(0, -2) for part in frames.values()]
    low = torch.stack([part.amin(0) for part in every]).amin(0)
    high = torch.stack([part.amax(0) for part in every]).amax(0)
    return {"range": [[float(f"{a:.4g}"), float(f"{b:.4g}")] for a, b in zip(low, high, strict=True)]}


def conformal(scores: Tensor, coverage: float) -> Tensor:
    """The k-th smallest of n scores in each column, k = ceil((n + 1) coverage): `(n, steps)` -> `(steps,)`."""
    rank = math.ceil((len(scores) + 1) * coverage)
    if rank > len(scores):
        raise ValueError(f"{len(scores)} calibration scores are too few for a coverage of {coverage}")
    return scores.sort(0).values[rank - 1]


Maker = Callable[[int, int], Frames]
