"""What an equation conserves, and how far a prediction lets it drift.

    quantity of a task      density at a point, whose integral the equation keeps
    cns1d                   mass rho, momentum rho v, energy p / (gamma - 1) + rho v² / 2
    shallow_water2d         mass h, momentum h v (until waves reach the open sides)
    droplet2d               mass rho (walls take up momentum)
    others                  the fields themselves, whether conserved or not

The truth's own drift stands beside the prediction's: where the truth drifts too, nothing was to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from spectrakan.fields import Trajectories
from spectrakan.metrics import drift
from spectrakan.pde.euler_flux import to_conserved

Constants = Mapping[str, float]
Quantities = Callable[[Tensor, Constants], Tensor]
"""Fields `(..., channel)` and the task's constants -> densities of the quantities `(..., quantity)`."""


def _gas(fields: Tensor, constants: Constants) -> Tensor:
    return to_conserved(fields.movedim(-1, 0), constants.get("gamma", 5.0 / 3.0)).movedim(0, -1)


def _water(fields: Tensor, constants: Constants) -> Tensor:
    del constants
    return torch.cat([fields[..., :1], fields[..., :1] * fields[..., 1:]], dim=-1)


def _first_field(fields: Tensor, constants: Constants) -> Tensor:
    del constants
    return fields[..., :1]


CONSERVED: dict[str, tuple[tuple[str, ...], int, Quantities]] = {
    "cns1d": (("mass", "momentum", "energy"), 3, _gas),
    "shallow_water2d": (("mass", "momentum_x", "momentum_y"), 3, _water),
    "droplet2d": (("mass",), 3, _first_field),
}
"""By task: names of the quantities, fields that they are made of, and how."""


class DriftProfile:
    """Root mean square over samples of <q>(t) - <q>(last given frame), from a stream of batches."""

    def __init__(self, trajectories: Trajectories) -> None:
        own = tuple(spec.name for spec in trajectories.fields)
        names, count, densities = CONSERVED.get(trajectories.task, (own, len(own), None))
        known = densities is not None and count == len(own)
        self.names = names if known else own
        self.grid, self.constants = trajectories.grid, trajectories.constants
        self._densities = densities if known else None
        self._squares: dict[str, Tensor] = {}
        self._samples = 0

    def add(self, start: Tensor, pred: Tensor, target: Tensor) -> None:
        """Take in the last given frames `(batch, *space, channel)` and what was said and true after them."""
        first = self._quantities(start)
        for name, frames in (("truth", target), ("prediction", pred)):
            moved = drift(self._quantities(frames), first, self.grid).square().sum(0)
            self._squares[name] = moved if name not in self._squares else self._squares[name] + moved
        level = drift(first[:, None], torch.zeros_like(first), self.grid).square().sum(0)
        self._squares["start"] = level if "start" not in self._squares else self._squares["start"] + level
        self._samples += start.shape[0]

    def result(self) -> dict[str, Any]:
        """By quantity: the root mean square of its mean at the `start`, and of its drift at each frame."""
        roots = {name: (total / self._samples).sqrt() for name, total in self._squares.items()}
        return {
            "quantities": list(self.names),
            "start": dict(zip(self.names, roots["start"][0].tolist(), strict=True)),
            **{kind: dict(zip(self.names, roots[kind].T.tolist(), strict=True)) for kind in ("truth", "prediction")},
        }

    def _quantities(self, fields: Tensor) -> Tensor:
        values = fields.to(torch.float64)
        return values if self._densities is None else self._densities(values, self.constants)
