"""What an operator maps to what: the facts that data impose on a model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from spectrakan.config import settings
from spectrakan.errors import ConfigError
from spectrakan.fields.grid import Boundary

Count = Annotated[int, Field(ge=1)]


@settings
class OperatorSignature:
    """The shapes an operator takes and gives: (B, history, *space, in) -> (B, *space, out)."""

    space_dims: Annotated[int, Field(ge=1, le=3)]
    """Number of spatial axes, 1 to 3."""
    history: Count
    """Number of past frames in the input (tau_in in the paper)."""
    in_channels: Count
    """Fields in each input frame."""
    out_channels: Count
    """Fields in the output frame."""
    num_params: Annotated[int, Field(ge=0)] = 0
    """Scalar physical parameters that come with each sample."""
    boundary: tuple[Boundary, ...] = ()
    """What happens at the ends of each axis; empty when unknown."""
    steady: bool = False
    """Whether the output is another field at the same time rather than the next frame of the input's."""

    def __post_init__(self) -> None:
        if self.boundary and len(self.boundary) != self.space_dims:
            raise ConfigError(f"boundary names {len(self.boundary)} axes, space_dims says {self.space_dims}")

    @property
    def evolves(self) -> bool:
        """Whether the output is the next frame of the input's own fields, so that it can be fed back."""
        return not self.steady and self.in_channels == self.out_channels
