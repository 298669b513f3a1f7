"""What an operator maps to what: the shapes that data impose on a model, and batches of such data."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError
from spectrakan.fields.grid import Boundary, Grid


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
    in_fields: tuple[str, ...] = ()
    """Names of the input fields; empty when unknown."""
    out_fields: tuple[str, ...] = ()
    """Names of the output fields; empty when unknown."""
    param_names: tuple[str, ...] = ()
    """Names of the parameters; empty when unknown."""

    def __post_init__(self) -> None:
        if self.boundary and len(self.boundary) != self.space_dims:
            raise ConfigError(f"boundary names {len(self.boundary)} axes, space_dims says {self.space_dims}")
        for name, count in (("in_fields", self.in_channels), ("out_fields", self.out_channels)):
            if getattr(self, name) and len(getattr(self, name)) != count:
                raise ConfigError(f"{name} must have {count} names, one a channel, got {getattr(self, name)}")
        if self.param_names and len(self.param_names) != self.num_params:
            raise ConfigError(f"param_names must have {self.num_params} names, got {self.param_names}")

    @property
    def evolves(self) -> bool:
        """Whether the output is the next frame of the input's own fields, so that it can be fed back."""
        return not self.steady and self.in_channels == self.out_channels


@dataclass(frozen=True, eq=False)
class Window:
    """A batch of consecutive frames, in physical units.

    `inputs` `(batch, history, *space, in_channels)` are followed in time by
    `targets` `(batch, horizon, *space, out_channels)`; `params` `(batch, num_params)` or None.
    `times` `(batch, history + horizon)` are the instants of the frames, float64; None where they are not known.
    """

    inputs: Tensor
    targets: Tensor
    params: Tensor | None = None
    grid: Grid | None = None
    times: Tensor | None = None
