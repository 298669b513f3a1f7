"""How several processes score one test set: each takes some of the samples, and all learn what each has found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spectrakan.fields import Grid
from spectrakan.metrics import MetricAccumulator


def _keep(document: Any) -> list[Any]:
    return [document]


@dataclass(frozen=True)
class Share:
    """The part of one process among `processes`; by default there is one, which does everything."""

    rank: int = 0
    processes: int = 1
    exchange: Callable[[Any], list[Any]] = _keep
    """A JSON document of this process -> those of all processes, in their order; all must call it together."""

    def part(self, count: int, unit: int = 1) -> range:
        """Which of `count` items this process takes: successive ones, in whole units of `unit` items.

        >>> [list(Share(rank, 2).part(5, unit=2)) for rank in (0, 1)]
        [[0, 1], [2, 3, 4]]
        """
        units = -(-count // unit)
        first, last = (min(count, unit * (units * place // self.processes)) for place in (self.rank, self.rank + 1))
        return range(first, last)

    def join(self, stream: MetricAccumulator, grid: Grid) -> MetricAccumulator:
        """The streams of all processes as one, in their order."""
        if self.processes == 1:
            return stream
        states = self.exchange(stream.state())
        joined, *others = (MetricAccumulator.restore(state, grid=grid) for state in states)
        for other in others:
            joined.merge(other)
        return joined


ALONE = Share()
