"""Which trajectories of a set are the same, byte for byte."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from spectrakan.data.progress import Progress
from spectrakan.fields import Trajectories


def duplicate_groups(trajectories: Trajectories, progress: Progress | None = None) -> tuple[tuple[int, ...], ...]:
    """All samples, in groups of equal inputs, values and parameters; a unique sample is a group of one.

    Groups are in order of their first member. Two passes keep a large file cheap: the first compares what a
    trajectory starts from, and only samples that agree there are read whole.
    """
    starts: dict[Hashable, list[int]] = defaultdict(list)
    for sample in range(trajectories.num_samples):
        starts[_start(trajectories, sample)].append(sample)
        if progress is not None:
            progress(sample + 1, trajectories.num_samples)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for start, samples in starts.items():
        for sample in samples:
            whole = _digest(trajectories.values[sample]) if len(samples) > 1 else b""
            groups[start, whole].append(sample)
    return tuple(sorted(tuple(group) for group in groups.values()))


def _start(trajectories: Trajectories, sample: int) -> bytes:
    """Digest of what determines a solution: its input or first frame, and its parameters."""
    source = trajectories.values if trajectories.inputs is None else trajectories.inputs
    start = _digest(source[sample, 0])
    return start if trajectories.params is None else start + _digest(trajectories.params[sample])


def _digest(values: object) -> bytes:
    plain = np.ascontiguousarray(values)
    # Adding zero makes the two zeros of floating point one.
    return hashlib.sha256((plain + plain.dtype.type(0)).tobytes()).digest()
