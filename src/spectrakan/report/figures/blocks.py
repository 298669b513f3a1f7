"""A block for each model, its prediction above its error; the first block is the truth above the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectrakan.report.figures.scale import Scale
from spectrakan.report.figures.sheet import Panel, Row


@dataclass(frozen=True, eq=False)
class Block:
    """Two maps that belong together."""

    above: Panel
    below: Panel


def block_rows(blocks: Sequence[Block], columns: int) -> list[Row]:
    """Blocks from left to right, then in further bands; a band shows each of its scales once."""
    rows = []
    for first in range(0, len(blocks), columns):
        band = list(blocks[first : first + columns])
        above, below = [block.above for block in band], [block.below for block in band]
        shown = _scales(above)
        rows += [Row(above, shown), Row(below, [scale for scale in _scales(below) if scale not in shown])]
    return rows


def balanced(count: int, most: int) -> int:
    """Columns for `count` blocks, at most `most`, so that the last band is not nearly empty.

    >>> balanced(10, 6), balanced(7, 6), balanced(4, 6)
    (5, 4, 4)
    """
    bands = -(-count // most)
    return -(-count // bands)


def _scales(panels: Sequence[Panel]) -> list[Scale]:
    """The scales of a row, the one that most maps share first."""
    found = {id(panel.scale): panel.scale for panel in reversed(panels)}
    return list(found.values())
