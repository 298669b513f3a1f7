"""Which trajectories train a model, choose it, calibrate it and test it.

Whole trajectories go to one part, and so do all exact copies of a trajectory: otherwise a test measures
memory. Sets whose samples follow each other in time are cut in time order with a gap between the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from spectrakan.config import as_mapping, build_settings, settings
from spectrakan.data.duplicates import duplicate_groups
from spectrakan.data.progress import Progress
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Index = Annotated[int, Field(ge=0)]

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
    time_ordered: bool = False
    """Whether samples are successive instants, so that a random split would leak from neighbours."""
    gap: Index = 0
    """Samples left out between two parts of a time-ordered split."""
    pdebench: Literal["none", "first", "last"] = "none"
    """PDEBench's split in place of all shares: the first or the last tenth of the stored samples is the test and
    also chooses the weights, the rest trains, and copies may stand on both sides. To repeat its numbers only."""

    def __post_init__(self) -> None:
        total = sum(self.fractions)
        if abs(total - 1.0) > 1e-9:
            raise ConfigError(
                f"train, validation, calibration and test must sum to 1, got {self.fractions}, sum {total:g}"
            )
        if self.train == 0.0:
            raise ConfigError("train must be above 0, for nothing can be learned from no sample")
        if self.gap and not self.time_ordered:
            raise ConfigError(f"gap={self.gap} means nothing unless time_ordered is true")
        if self.pdebench != "none" and self.time_ordered:
            raise ConfigError(f"pdebench='{self.pdebench}' is a split of its own; it cannot be time_ordered too")

    @property
    def fractions(self) -> tuple[float, ...]:
        """The shares in the order of `PARTS`."""
        return (self.train, self.validation, self.calibration, self.test)


@settings
class Split:
    """Sample indices of each part, increasing; what a run's record keeps of it.

    >>> Split.from_json(Split(train=(0, 2), validation=(), calibration=(), test=(1,)).to_json()).train
    (0, 2)
    """

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
    validation_is_test: bool = False
    """Whether the test samples also choose the weights, as in PDEBench; `validation` is then empty."""

    def __post_init__(self) -> None:
        if self.validation_is_test and self.validation:
            raise ConfigError("a split whose test samples choose the weights has no validation samples of its own")
        members = [index for part in (*PARTS, "unused") for index in getattr(self, part)]
        if len(set(members)) != len(members):
            raise ConfigError("a sample stands in two parts of the split; each index may be given once")

    def part(self, name: str) -> tuple[int, ...]:
        """The indices of the part of that name."""
        if name not in (*PARTS, "unused"):
            raise ConfigError(f"unknown part '{name}'; known: {', '.join((*PARTS, 'unused'))}")
        indices: tuple[int, ...] = getattr(self, "test" if self.validation_is_test and name == "validation" else name)
        return indices

    def to_json(self) -> dict[str, Any]:
        """Plain lists of indices by part."""
        return as_mapping(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Split:
        """The split that `to_json` wrote."""
        return build_settings(cls, document, where="split")


def split_trajectories(
    trajectories: Trajectories,
    choices: SplitSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Split:
    """Split a set by trajectory; the same set, choices and seed give the same split.

    Shares are met as closely as whole groups of copies allow; a part with a positive share is never empty.
    """
    choices = SplitSettings() if choices is None else choices
    if choices.pdebench != "none":
        return _as_pdebench(trajectories.num_samples, choices.pdebench)
    return split_groups(duplicate_groups(trajectories, progress), choices, seed)


def split_groups(groups: Sequence[Sequence[int]], choices: SplitSettings, seed: int = 0) -> Split:
    """Split samples of which each group of copies must stay together."""
    wanted = sum(share > 0 for share in choices.fractions)
    if len(groups) < wanted:
        raise ConfigError(
            f"{len(groups)} distinct trajectories cannot fill {wanted} parts; "
            "give more samples or set the share of a part to 0"
        )
    if choices.time_ordered:
        return _in_time_order(groups, choices)
    return _at_random(groups, choices, seed)


def _at_random(groups: Sequence[Sequence[int]], choices: SplitSettings, seed: int) -> Split:
    """Deal the groups in random order, each to the part that lacks most of its target."""
    targets = _targets(sum(len(group) for group in groups), choices.fractions)
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
    train, validation, calibration, test = (tuple(sorted(part)) for part in parts)
    return Split(train=train, validation=validation, calibration=calibration, test=test)


def _in_time_order(groups: Sequence[Sequence[int]], choices: SplitSettings) -> Split:
    """Cut the stored order into parts; a copy of a later part's sample is dropped from the earlier one."""
    total = sum(len(group) for group in groups)
    kept = [share for share in choices.fractions if share > 0]
    targets = _targets(total - choices.gap * (len(kept) - 1), choices.fractions)
    if min((target for target, share in zip(targets, choices.fractions, strict=True) if share), default=0) < 1:
        raise ConfigError(
            f"{total} samples are too few for {len(kept)} parts with gaps of {choices.gap}; lower the gap"
        )
    copies = {index: max(group) for group in groups for index in group}
    parts: dict[str, tuple[int, ...]] = {}
    begin = 0
    for name, target in zip(PARTS, targets, strict=True):
        end = begin + target
        # A sample that comes again after this part would be known before its test.
        parts[name] = tuple(index for index in range(begin, end) if copies[index] < end)
        begin = end + choices.gap if target else begin
    if empty := [name for name, target in zip(PARTS, targets, strict=True) if target and not parts[name]]:
        raise ConfigError(f"every sample of the part '{empty[0]}' comes again later, so nothing is left of it")
    used = {index for part in parts.values() for index in part}
    train, validation, calibration, test = parts.values()
    unused = tuple(index for index in range(total) if index not in used)
    return Split(train=train, validation=validation, calibration=calibration, test=test, unused=unused)


def _as_pdebench(total: int, end: Literal["first", "last"]) -> Split:
    """A tenth of the stored samples, from one end, for test and choice of weights; the rest for training."""
    tenth = total // 10
    if tenth < 1:
        raise ConfigError(f"PDEBench's split takes a tenth of the samples for the test: give 10 or more, got {total}")
    cut = tenth if end == "first" else total - tenth
    before, after = tuple(range(cut)), tuple(range(cut, total))
    test, train = (before, after) if end == "first" else (after, before)
    return Split(train=train, test=test, validation_is_test=True)


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
