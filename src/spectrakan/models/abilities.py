"""Which grids each operator takes: facts of the methods, for tables and error messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Refinement = Literal["same operator", "runs only"]


@dataclass(frozen=True)
class Abilities:
    """What a method can be asked.

    `refinement` says what one set of weights is on another grid: the same operator up to discretisation error, or
    a network that runs there but whose stencils have changed their meaning.
    """

    space_dims: tuple[int, ...]
    refinement: Refinement
    reads: str
    """How the input field is read."""


ABILITIES: dict[str, Abilities] = {
    "spectrakan": Abilities((1, 2, 3), "same operator", "modes below each axis' limit"),
    "amfno": Abilities((1, 2, 3), "same operator", "modes below each axis' limit"),
    "unet": Abilities((1, 2, 3), "runs only", "3-wide stencils of cells"),
    "fno": Abilities((1, 2, 3), "same operator", "low modes of all axes jointly"),
    "ffno": Abilities((1, 2, 3), "same operator", "low modes of each axis"),
    "lno": Abilities((1, 2, 3), "same operator", "poles and residues in physical units"),
    "transolver": Abilities((1, 2, 3), "same operator", "cells by coordinates, in learned slices"),
    "local_fno": Abilities((1, 2, 3), "same operator", "low modes, and kernels in physical units"),
    "deepokan": Abilities((1, 2, 3), "same operator", "fixed sensors"),
    "cvit": Abilities((1, 2, 3), "same operator", "patches of a fixed lattice"),
    "deeponet": Abilities((1, 2, 3), "same operator", "fixed sensors"),
    "persistence": Abilities((1, 2, 3), "same operator", "the last frame"),
    "climatology": Abilities((1, 2, 3), "same operator", "nothing"),
    "ridge": Abilities((1, 2, 3), "same operator", "low modes of all axes jointly"),
}
"""What every operator of the catalog takes."""
