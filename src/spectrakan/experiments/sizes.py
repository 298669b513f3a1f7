"""The size of every competitor, with the reason for it.

SpectraKAN has as many channels as fit into 1.5 times the training seconds of FNO: 40 in 1D, in 2D 32 where fields
evolve and 24 for steady maps; about 0.35, 0.37 and 0.7 million weights. A baseline has its published size where that
is near, or is brought near that number as far as a step of at most about two to three times SpectraKAN's allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from spectrakan.data.catalog import task as task_named

Origin = Literal["near", "published", "own"]


@dataclass(frozen=True)
class Size:
    """Choices of a model that fix its size, for tasks with 1 and with 2 axes."""

    origin: Origin
    reason: str
    one: dict[str, Any]
    two: dict[str, Any]
    two_evolving: dict[str, Any] | None = None
    """Choices on two axes where fields evolve; None: `two`."""


_CVIT: dict[str, Any] = {
    "num_layers": 2, "num_heads": 4, "decoder_heads": 4, "latent_cells": 16, "latent_width": 32, "sharpness": 400.0
}  # fmt: skip

SIZES: dict[str, Size] = {
    "spectrakan": Size("own", "its default, as wide as time allows", {"width": 40}, {"width": 24}, {"width": 32}),
    "amfno": Size("own", "the trunk of SpectraKAN", {"width": 40}, {"width": 24}, {"width": 32}),
    "unet": Size(
        "near", "PDEBench's has 2.7 (1D) and 7.8 (2D) million weights; narrower by the same factor at every level",
        {"width": 8}, {"width": 12},
    ),
    "fno": Size(
        "published", "PDEBench's width 20 with 12 modes in 2D; in 1D that has 44 thousand weights and is "
        "brought near instead",
        {"width": 40, "num_modes": 16}, {"width": 20, "num_modes": 12},
    ),
    "ffno": Size(
        "near", "24 layers of width 64 as published cost 25 times a step of SpectraKAN",
        {"width": 48, "num_modes": 16, "num_layers": 4, "factor": 2, "share_weights": False, "gain": 1.0},
        {"width": 48, "num_modes": 16, "num_layers": 4, "factor": 2, "share_weights": False, "gain": 1.0},
    ),
    "lno": Size(
        "published", "one pole-residue layer as published in 2D; in 1D wider than published (width 4)",
        {"width": 16, "num_modes": 16}, {"width": 16, "num_modes": 4},
    ),
    "transolver": Size(
        "near", "as large as its time allows (0.1 million weights in 2D); published: 1.8 million, 25 times the time",
        {"width": 64, "num_layers": 3, "num_heads": 4, "num_slices": 16},
        {"width": 64, "num_layers": 3, "num_heads": 4, "num_slices": 16},
    ),
    "local_fno": Size(
        "near", "no size is published for these tasks; modes of FNO, with both local branches",
        {"width": 36, "num_modes": 16}, {"width": 16, "num_modes": 12},
    ),
    "deepokan": Size(
        "near", "published: 30 centres, 3.3 million weights in 1D; in 2D 0.7 million and six times FNO's step",
        {"num_centres": 8}, {"num_centres": 16},
    ),
    "cvit": Size(
        "near", "published: 2.6 (1D) and 6 (2D) million weights",
        {"width": 64, "decoder_width": 64, **_CVIT}, {"width": 96, "decoder_width": 96, **_CVIT},
    ),
    "persistence": Size("own", "no weights", {}, {}),
    "climatology": Size("own", "no weights", {}, {}),
    "ridge": Size("own", "no weights to train", {}, {}),
}  # fmt: skip

TASK_CHOICES: dict[tuple[str, str], dict[str, Any]] = {}
"""What a model does differently on one case, chosen on validation data, by (model, case).

Every model may have as many trials on a case as SpectraKAN had for its entry here (docs/protocol.md).
"""


def size_choices(model: str, task: str) -> dict[str, Any]:
    """The choices that fix a model's size on a task."""
    if model not in SIZES:
        return {}
    size, learnt = SIZES[model], task_named(task)
    if len(learnt.resolution) == 1:
        return size.one
    return size.two if learnt.steady or size.two_evolving is None else size.two_evolving
