"""Which data train a model, choose it, calibrate it and test it.

by="trajectory"     whole trajectories go to one part at random, and so do all exact copies of a trajectory: otherwise
                    a test measures memory
by="sample_order"   samples are successive instants (days of weather): parts follow each other, with a gap
by="time"           every trajectory is cut in time, first the training part, then the others, with a gap of frames:
                    for one long simulation or a reanalysis
"""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import field
from itertools import accumulate
from typing import Annotated, Literal, cast

import numpy as np
from pydantic import Field

from spectrakan.config import build_settings, settings
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Index = Annotated[int, Field(ge=0)]

SplitKind = Literal["trajectory", "sample_order", "time"]
PARTS = ("train", "validation", "calibration", "test")
"""The parts in the order in which time runs through them."""


@settings
class SplitSettings:
    """Shares of the samples; they must sum to one."""

    train: Fraction = 0.8
    """Share that the weights are fitted to."""
    validation: Fraction = 0.1
    """Share by which the best weights are chosen."""
    test: Fraction = 0.1
    """Share that is looked at once, at the end."""
    calibration: Fraction = 0.0
    """Share for the width of prediction bands."""
    by: SplitKind = "trajectory"
    """What is dealt out: whole trajectories, samples in their order, or frames in time."""
    gap: Index = 0
    """Samples (by="sample_order") or frames (by="time") left out between two parts."""

    def __post_init__(self) -> None:
        total = sum(self.fractions)
        if abs(total - 1.0) > 1e-9:
            raise ConfigError(
                f"train, validation, calibration and test must sum to 1, got {self.fractions}, sum {total:g}"
            )
        if self.train == 0.0:
            raise ConfigError("train must be above 0: nothing can be learned from no sample")
        if self.gap and self.by not in ("sample_order", "time"):
            raise ConfigError(f"gap={self.gap} needs by=sample_order or by=time, got by={self.by}")

    @property
    def fractions(self) -> tuple[float, ...]:
        """The shares in the order of `PARTS`."""
        return (self.train, self.validation, self.calibration, self.test)


@settings
class Split:
    """Sample indices of each part, increasing; what a run's record keeps of it."""

    train: tuple[Index, ...]
    """Samples that the weights are fitted to."""
    validation: tuple[Index, ...] = ()
    """Samples by which the best weights are chosen."""
    calibration: tuple[Index, ...] = ()
    """Samples that set the width of prediction bands."""
    test: tuple[Index, ...] = ()
    """Samples for the final score."""
    unused: tuple[Index, ...] = ()
    """Samples in a gap, or copies of a sample of a later part in a time-ordered set."""
    frames: dict[str, tuple[Index, Index]] = field(default_factory=dict)
    """Frames `[start, stop)` of each part of a split in time; empty otherwise. Parts then share their samples."""

    def __post_init__(self) -> None:
        members = [index for part in (*PARTS, "unused") for index in getattr(self, part)]
        if not self.frames and len(set(members)) != len(members):
            raise ConfigError("a sample stands in two parts of the split; each index may be given once")

    def part(self, name: str) -> tuple[int, ...]:
        """The indices of the part of that name."""
        return cast(tuple[int, ...], getattr(self, name))


def split_trajectories(trajectories: Trajectories, config: SplitSettings | None = None, seed: int = 0) -> Split:
    """Split a set by trajectory; the same set, config and seed give the same split.

    Shares are met as closely as whole groups of copies allow; a part with a positive share is never empty.
    """
    config = SplitSettings() if config is None else config
    if config.by == "time":
        if trajectories.steady:
            raise ConfigError("split.by=time cuts trajectories in time; these samples are steady")
        return split_frames(trajectories.num_samples, len(trajectories.times), config)
    return split_groups(duplicate_groups(trajectories), config, seed)


def duplicate_groups(trajectories: Trajectories) -> tuple[tuple[int, ...], ...]:
    """All samples, in groups of equal inputs, values and parameters; a unique sample is a group of one.

    Groups are in order of their first member. Two passes keep a large file cheap: the first compares what a
    trajectory starts from (its input or first frame, and its parameters), and only samples that agree there are
    read whole.
    """
    source = trajectories.values if trajectories.inputs is None else trajectories.inputs
    starts: dict[Hashable, list[int]] = defaultdict(list)
    for sample in range(trajectories.num_samples):
        params = b"" if trajectories.params is None else _digest(trajectories.params[sample])
        starts[_digest(source[sample, 0]), params].append(sample)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for start, samples in starts.items():
        for sample in samples:
            whole = _digest(trajectories.values[sample]) if len(samples) > 1 else b""
            groups[start, whole].append(sample)
    return tuple(sorted(tuple(group) for group in groups.values()))


def _digest(values: object) -> bytes:
    plain = np.ascontiguousarray(values)
    # Adding zero makes the two zeros of floating point one.
    return hashlib.sha256((plain + plain.dtype.type(0)).tobytes()).digest()


def split_frames(num_samples: int, num_frames: int, config: SplitSettings) -> Split:
    """Cut the frames of every trajectory into successive parts with `gap` frames between them.

    >>> split_frames(1, 100, SplitSettings(by="time", gap=5, train=0.5, validation=0.25, test=0.25)).frames
    {'train': (0, 45), 'validation': (50, 73), 'test': (78, 100)}
    """
    frames = _successive(num_frames, config, 2, "frames")
    return build_settings(Split, {"frames": frames, **{name: list(range(num_samples)) for name in frames}})


def _successive(total: int, config: SplitSettings, least: int, things: str) -> dict[str, tuple[int, int]]:
    """Where each part begins and ends when its share of so many things in a row follows the part before it."""
    shares = {name: share for name, share in zip(PARTS, config.fractions, strict=True) if share > 0}
    targets = _targets(total - config.gap * (len(shares) - 1), list(shares.values()))
    if min(targets) < least:
        raise ConfigError(
            f"{total} {things} are too few for {len(shares)} parts of at least {least} {things} with gaps of "
            f"{config.gap}; lower the gap"
        )
    begins = accumulate((target + config.gap for target in targets), initial=0)
    return {name: (begin, begin + target) for name, begin, target in zip(shares, begins, targets, strict=False)}


def split_groups(groups: Sequence[Sequence[int]], config: SplitSettings, seed: int = 0) -> Split:
    """Split samples of which each group of copies must stay together."""
    wanted = sum(share > 0 for share in config.fractions)
    if len(groups) < wanted:
        raise ConfigError(
            f"{len(groups)} distinct trajectories cannot fill {wanted} parts; "
            "give more samples, split long ones in time (data.split.by=time), or set the share of a part to 0"
        )
    if config.by == "sample_order":
        return _in_time_order(groups, config)
    # Deal the groups in random order, each to the part that lacks most of its target.
    targets = _targets(sum(len(group) for group in groups), config.fractions)
    parts: list[list[int]] = [[] for _ in PARTS]
    order = np.random.default_rng(seed).permutation(len(groups))
    for position, chosen in enumerate(order):
        missing = [target - len(part) for target, part in zip(targets, parts, strict=True)]
        empty = [
            index for index, (target, part) in enumerate(zip(targets, parts, strict=True)) if target and not part
        ]
        # The last groups go to parts that would otherwise stay empty (few groups, or large ones).
        eligible = empty if empty and len(order) - position <= len(empty) else range(len(PARTS))
        parts[max(eligible, key=lambda index: missing[index])].extend(groups[int(chosen)])
    return build_settings(Split, {name: sorted(part) for name, part in zip(PARTS, parts, strict=True)})


def _in_time_order(groups: Sequence[Sequence[int]], config: SplitSettings) -> Split:
    """Cut the stored order into parts; a copy of a later part's sample is dropped from the earlier one."""
    total = sum(len(group) for group in groups)
    copies = {index: max(group) for group in groups for index in group}
    parts: dict[str, list[int]] = {}
    for name, (begin, end) in _successive(total, config, 1, "samples").items():
        # A sample that comes again after this part would be known before its test.
        parts[name] = [index for index in range(begin, end) if copies[index] < end]
        if not parts[name]:
            raise ConfigError(f"every sample of the part '{name}' comes again later, so nothing is left of it")
    used = {index for part in parts.values() for index in part}
    return build_settings(Split, {**parts, "unused": [index for index in range(total) if index not in used]})


def _targets(total: int, fractions: Sequence[float]) -> list[int]:
    """Whole numbers near total * fraction, summing to the total, at least one where the share is positive."""
    exact = [total * share for share in fractions]
    counts = [max(int(size), 1) if share else 0 for size, share in zip(exact, fractions, strict=True)]
    while sum(counts) != total:
        step = 1 if sum(counts) < total else -1
        open_parts = [index for index, share in enumerate(fractions) if share and (step > 0 or counts[index] > 1)]
        if not open_parts:
            return [0] * len(counts)
        lacking = max(open_parts, key=lambda index: step * (exact[index] - counts[index]))
        counts[lacking] += step
    return counts
