"""Steps in time for a batch: each sample has its own step size, and threads work on separate parts of the batch."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import torch
from torch import Tensor

from spectrakan.errors import ConfigError, SpectraKANError

MAX_THREADS = 8
"""More threads wait for each other, because Python starts operations from one thread at a time."""
CACHED_VALUES = 2**17
"""Values of a state that stay in the processor's cache."""

TakeStep = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(state, step sizes `(samples,)`, indices of the samples in the batch `(samples,)`) -> next state."""


def advance_to_frames(
    initial: Tensor,
    times: Sequence[float],
    take_step: TakeStep,
    stable_step: Callable[[Tensor], Tensor],
    *,
    axis: int = 0,
    pool: int = 64,
) -> Tensor:
    """Advance every sample from time 0 to exactly the given times, each with its own step size.

    `initial` has its samples on `axis`; `take_step(state, dt, members)` and `stable_step(state)` get a part of
    them. dt and the largest stable step are `(samples,)`, `members` are the indices of these samples in the
    batch. Returns `(samples, len(times), *rest of the state)`. At most `pool` samples are in work at once, so
    that they stay in the processor's cache. A sample that reaches the last time is replaced by the next one, so
    no sample waits for the stiffest one.

    >>> decay = lambda u, dt, members: u * (-dt).exp()
    >>> limit = lambda u: torch.full_like(u, 0.3)
    >>> advance_to_frames(torch.ones(2, dtype=torch.float64), [0.0, 1.0], decay, limit)[0]
    tensor([1.0000, 0.3679], dtype=torch.float64)
    """
    check_times(times)
    axis = axis % initial.ndim
    frames = torch.as_tensor(list(times), dtype=initial.dtype, device=initial.device)
    rest = [size for dim, size in enumerate(initial.shape) if dim != axis]
    result = initial.new_empty((initial.shape[axis], len(times), *rest))
    given = int((frames == 0).sum())
    result[:, :given] = initial.movedim(axis, 0).unsqueeze(1)
    if given == len(times) or not initial.shape[axis]:
        return result
    # Samples with many steps start first, so that the last ones end at about the same time.
    queue = stable_step(initial).argsort()
    members, queue = queue[:pool], queue[pool:]
    state = initial.index_select(axis, members)
    clock = torch.zeros_like(members, dtype=initial.dtype)
    target = torch.full_like(members, given)
    while members.numel():
        remaining = frames[target] - clock
        step, arrives = _equal_steps(remaining, stable_step(state), members, clock)
        state = take_step(state, step, members)
        clock += step
        if not bool(arrives.any()):
            continue
        here = arrives.nonzero().squeeze(1)
        clock[here] = frames[target[here]]
        result[members[here], target[here]] = state.index_select(axis, here).movedim(axis, 0)
        target[here] += 1
        done = (target == len(frames)).nonzero().squeeze(1)
        fresh, leaving = done[: queue.numel()], done[queue.numel() :]
        if fresh.numel():
            members[fresh], queue = queue[: fresh.numel()], queue[fresh.numel() :]
            state.index_copy_(axis, fresh, initial.index_select(axis, members[fresh]))
            clock[fresh], target[fresh] = 0.0, given
        if leaving.numel():
            stays = torch.ones_like(members, dtype=torch.bool)
            stays[leaving] = False
            keep = stays.nonzero().squeeze(1)
            state = state.index_select(axis, keep)
            members, clock, target = members[keep], clock[keep], target[keep]
    return result


def _equal_steps(remaining: Tensor, limit: Tensor, members: Tensor, clock: Tensor) -> tuple[Tensor, Tensor]:
    """Divide the time to the next frame into equal stable steps; also which samples arrive with this step."""
    healthy = limit > 0
    if not bool(healthy.all()):
        worst = int((~healthy).nonzero()[0])
        raise SpectraKANError(
            f"sample {int(members[worst])} has no stable time step at t = {float(clock[worst]):.6g} "
            f"(got {float(limit[worst])}): its state is not finite or not physical; "
            "use a smaller Courant number or a finer grid, and check the initial state"
        )
    count = (remaining / limit - 1e-9).ceil_().clamp_min_(1.0)
    return remaining / count, count <= 1.0


def check_times(times: Sequence[float]) -> None:
    """Refuse times that are empty, not finite, negative or decreasing."""
    values = [float(time) for time in times]
    if not values or not all(math.isfinite(time) for time in values):
        raise ConfigError(f"times must be finite numbers, at least one of them, got {values}")
    if values[0] < 0 or any(later < earlier for earlier, later in pairwise(values)):
        raise ConfigError(f"times must start at 0 or later and never decrease, got {values}")


def samples_at_once(batch: Tensor, values_per_sample: int) -> int:
    """Number of samples that fit into the cache together; the whole batch on devices other than the CPU."""
    if batch.device.type != "cpu":
        return max(1, len(batch))
    return max(1, CACHED_VALUES // values_per_sample)


def for_each_part(num_samples: int, at_once: int, work: Callable[[slice], None]) -> None:
    """Call `work` on consecutive parts of at most `at_once` samples, on as many threads as torch has.

    A thread with its own part synchronises once, at the end. Torch's own threads synchronise after every small
    operation and stall whenever another program uses one of the cores. Inside the workers torch uses one
    thread; its number of threads is restored at the end.

    >>> seen = torch.zeros(5)
    >>> for_each_part(5, 2, lambda part: seen[part].add_(1))
    >>> seen.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    available = torch.get_num_threads()
    threads = max(1, min(available, MAX_THREADS, num_samples))
    # Parts of about equal size, a multiple of the number of threads.
    rounds = max(1, math.ceil(num_samples / (at_once * threads)))
    size = max(1, math.ceil(num_samples / (rounds * threads)))
    parts = [slice(first, min(first + size, num_samples)) for first in range(0, num_samples, size)]
    if threads < 2:
        for part in parts:
            work(part)
        return
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            # Reading the results raises the first error and cancels the parts that have not started.
            for _ in pool.map(work, parts):
                pass
    finally:
        torch.set_num_threads(available)
