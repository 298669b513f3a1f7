"""Which grids each operator takes: facts of the methods, for tables and error messages.

All take any number of cells from `operator.MIN_CELLS` on along each axis, odd or even, square or not, and refuse
fewer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Abilities:
    """What a method can be asked."""

    space_dims: tuple[int, ...]
    order: int | None
    """What one set of weights is on another grid: the same operator up to an error of at least this order in the
    cell width, for smooth fields; or (`None`) a network that runs there, but whose stencils have changed their
    meaning."""
    reads: str
    """How the input field is read."""

    @property
    def refinement(self) -> str:
        """The order in words.

        >>> Abilities((1, 2), 2, "the last frame").refinement
        'same operator, order 2'
        """
        return "runs only" if self.order is None else f"same operator, order {self.order}"


ABILITIES: dict[str, Abilities] = {
    "spectrakan": Abilities((1, 2, 3), 2, "modes below each axis' limit"),
    "amfno": Abilities((1, 2, 3), 2, "modes below each axis' limit"),
    "unet": Abilities((1, 2, 3), None, "3-wide stencils of cells"),
    # Two cells of padding, as published; order 2 with `padding_at` or without padding.
    "fno": Abilities((1, 2, 3), 1, "low modes of all axes jointly"),
    "ffno": Abilities((1, 2, 3), 2, "low modes of each axis"),
    "lno": Abilities((1, 2, 3), 1, "poles and residues in physical units"),
    # `projection="convolution"` runs only.
    "transolver": Abilities((1, 2, 3), 2, "cells by coordinates, in learned slices"),
    "local_fno": Abilities((1, 2, 3), 1, "low modes, and kernels in physical units"),
    "deepokan": Abilities((1, 2, 3), 2, "fixed sensors"),
    "cvit": Abilities((1, 2, 3), 2, "patches of a fixed lattice"),
    "deeponet": Abilities((1, 2, 3), 2, "fixed sensors"),
    "persistence": Abilities((1, 2, 3), 2, "the last frame"),
    "climatology": Abilities((1, 2, 3), 2, "nothing"),
    "ridge": Abilities((1, 2, 3), 2, "low modes of all axes jointly"),
}
"""What every operator of the catalog takes."""
