"""The record of what is known about a model on a region: every number with its status.

`certified`: proved for all inputs of the region. `estimated`: measured, and possibly exceeded by an input that was
not tried. The values that attacks reach are no bounds but lower limits of every bound; they have no status.
An infinite value says that there is no finite bound.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from spectrakan.runs import as_json

Status = Literal["certified", "estimated"]
LOOSE = 1_000
"""Ratio of a bound to the worst found from which its sentence says that it is of no use."""


@dataclass(frozen=True)
class Entry:
    """One claim: `value` is never exceeded (certified) or was not exceeded in any trial (estimated).

    `attacked` is the worst that attacks found for the same quantity, None where nothing can be attacked.
    """

    value: float
    status: Status
    meaning: str
    attacked: float | None = None

    @property
    def beaten(self) -> bool:
        """Whether an attack exceeds the value by more than rounding.

        Attacks subtract the rounding errors of differences (`attack`); a share of 1e-9 is left for those of bounds.
        """
        return self.attacked is not None and self.attacked > self.value * (1 + 1e-9) + 1e-12

    @property
    def ratio(self) -> float | None:
        """The value over the worst that was found."""
        return self.value / self.attacked if self.attacked else None


@dataclass(frozen=True)
class LayerEdges:
    """Lipschitz constants of one KAN layer's edges, each `[output][input]`."""

    lemma: list[list[float]]
    exact: list[list[float]]
    on_region: list[list[float]]


@dataclass(frozen=True)
class Certificate:
    """What `certify` returns; rates are changes over the sup norm of the input's change, in normalised units."""

    radius: float
    num_inputs: int
    resolution: tuple[int, ...]
    entries: dict[str, Entry]
    edges: tuple[LayerEdges, ...]
    constants: dict[str, float] = field(default_factory=dict)
    log_modulation_paper: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def kan(self) -> float:
        """Lipschitz constant of the token's KAN over the summaries of the region."""
        return self.entries["kan"].value

    @property
    def modulation(self) -> float:
        """The library's bound of the modulation's Lipschitz constant."""
        return self.entries["modulation"].value

    @property
    def modulation_paper(self) -> float:
        """L_m of Theorem 3.2 with the same constants; infinite where it exceeds every float."""
        return self.entries["modulation_paper"].value

    @property
    def modulation_attacked(self) -> float:
        """The worst change of the modulation that was found, over the size of the perturbation."""
        return self.entries["modulation"].attacked or 0.0

    @property
    def status(self) -> dict[str, Status]:
        """`certified` or `estimated`, by entry."""
        return {name: entry.status for name, entry in self.entries.items()}

    @property
    def sentence(self) -> str:
        """What is guaranteed of the prediction, in words; fields are counted in their standard deviations."""
        entry, name = self.entries["prediction_change"], f"Inputs off by at most {100 * self.radius:.3g} %"
        name = f"{name} of the fields' standard deviation"
        found = f"worst found {100 * self.radius * (entry.attacked or 0.0):.3g} %"
        if entry.status == "estimated":
            return f"{name}: no bound of the prediction's change is proved; {found}"
        if not math.isfinite(entry.value):
            return f"{name}: the prediction's change has no finite bound; {found}"
        bound = f"{100 * self.radius * entry.value:.3g} % of its own"
        if entry.ratio is not None and entry.ratio > LOOSE:
            return f"{name}: the bound that is proved, {bound}, is too loose to be of use; {found}"
        return f"{name} change the prediction anywhere by at most {bound}; {found}"

    def capped(self, cap: float, measure: str) -> Certificate:
        """With a verdict on the cap that training put on the product bound by `hull` or `lemma`."""
        name = f"kan_{measure}_product"
        bound = self.entries[name].value
        kept = bound <= cap * (1 + 1e-9)
        word = "holds" if kept else "IS BROKEN"
        note = f"training capped L_KAN at {cap:g} by {name}, which is {bound:.6g}: the cap {word}"
        entry = Entry(cap, "certified", "the cap on L_KAN in training", attacked=bound)
        return replace(self, notes=(*self.notes, note), entries={**self.entries, "kan_cap": entry})

    @property
    def beaten(self) -> tuple[str, ...]:
        """Entries that an attack refutes; there must be none."""
        return tuple(name for name, entry in self.entries.items() if entry.beaten)

    def to_json(self) -> str:
        """The whole record as JSON text; numbers that are not finite are null."""
        record = asdict(self) | {
            "entries": {name: {**asdict(entry), "ratio": entry.ratio} for name, entry in self.entries.items()},
            "status": self.status,
            "sentence": self.sentence,
            "beaten": self.beaten,
            "modulation_attacked": self.entries["modulation"].attacked,
        }
        return json.dumps(as_json(record), indent=2)
