"""Stepping in time: batches whose samples step on their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from spectrakan.errors import ConfigError, SpectraKANError

_POOL = 64


def advance_to_frames(
    initial: Tensor,
    times: Sequence[float],
    take_step: Callable[[Tensor, Tensor], Tensor],
    stable_step: Callable[[Tensor], Tensor],
    *,
    axis: int = 0,
    pool: int = _POOL,
) -> Tensor:
    """Carry every sample from time 0 to exactly the given times, each by steps of its own size.

    `initial` has its samples on `axis`; `take_step(state, dt)` and `stable_step(state)` see a part of them,
    dt and the largest stable step being `(samples,)`. Returns `(samples, len(times), *rest of the state)`.
    At most `pool` samples are worked on at once, so that they stay in the processor's cache; a sample that
    has reached the last time leaves its place to the next, so nobody waits for the stiffest one.

    >>> decay = lambda u, dt: u * (-dt).exp()
    >>> limit = lambda u: torch.full_like(u, 0.3)
    >>> advance_to_frames(torch.ones(2, dtype=torch.float64), [0.0, 1.0], decay, limit)[0]
    tensor([1.0000, 0.3679], dtype=torch.float64)
    """
    _check_times(times)
    axis = axis % initial.ndim
    frames = torch.as_tensor(list(times), dtype=initial.dtype, device=initial.device)
    result = initial.new_empty((initial.shape[axis], len(times), *_without(initial.shape, axis)))
    given = int((frames == 0).sum())
    result[:, :given] = initial.movedim(axis, 0).unsqueeze(1)
    if given == len(times) or not initial.shape[axis]:
        return result
    # The costly ones go first: the last places then empty at about the same time.
    queue = stable_step(initial).argsort()
    places, queue = queue[:pool], queue[pool:]
    state = initial.index_select(axis, places)
    clock = torch.zeros_like(places, dtype=initial.dtype)
    target = torch.full_like(places, given)
    while places.numel():
        remaining = frames[target] - clock
        step, arrives = _equal_steps(remaining, stable_step(state), places, clock)
        state = take_step(state, step)
        clock += step
        if not bool(arrives.any()):
            continue
        here = arrives.nonzero().squeeze(1)
        clock[here] = frames[target[here]]
        result[places[here], target[here]] = state.index_select(axis, here).movedim(axis, 0)
        target[here] += 1
        done = (target == len(frames)).nonzero().squeeze(1)
        fresh, leaving = done[: queue.numel()], done[queue.numel() :]
        if fresh.numel():
            places[fresh], queue = queue[: fresh.numel()], queue[fresh.numel() :]
            state.index_copy_(axis, fresh, initial.index_select(axis, places[fresh]))
            clock[fresh], target[fresh] = 0.0, given
        if leaving.numel():
            stays = torch.ones_like(places, dtype=torch.bool)
            stays[leaving] = False
            keep = stays.nonzero().squeeze(1)
            state = state.index_select(axis, keep)
            places, clock, target = places[keep], clock[keep], target[keep]
    return result


def _equal_steps(remaining: Tensor, limit: Tensor, places: Tensor, clock: Tensor) -> tuple[Tensor, Tensor]:
    """Cut what remains to the next frame into equal stable steps; also says who arrives with this one."""
    healthy = limit > 0
    if not bool(healthy.all()):
        worst = int((~healthy).nonzero()[0])
        raise SpectraKANError(
            f"sample {int(places[worst])} has no stable time step at t = {float(clock[worst]):.6g} "
            f"(got {float(limit[worst])}): its state is not finite or not physical; "
            "check the initial state, or use a smaller Courant number"
        )
    count = (remaining / limit - 1e-9).ceil_().clamp_min_(1.0)
    return remaining / count, count <= 1.0


def _check_times(times: Sequence[float]) -> None:
    values = [float(time) for time in times]
    if not values or not all(math.isfinite(time) for time in values):
        raise ConfigError(f"times must be finite numbers, at least one of them, got {values}")
    if values[0] < 0 or any(later < earlier for earlier, later in pairwise(values)):
        raise ConfigError(f"times must start at 0 or later and never decrease, got {values}")


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return tuple(size for place, size in enumerate(shape) if place != axis)
