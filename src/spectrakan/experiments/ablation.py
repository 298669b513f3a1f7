"""What the parts of SpectraKAN are worth: table (a) of the paper, and the parts it does not ablate."""

from __future__ import annotations

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import Stage
from spectrakan.experiments.cells import Cell, with_choices
from spectrakan.experiments.learning_rates import rate_choice, rates_stage
from spectrakan.experiments.main import TABLE as MAIN
from spectrakan.experiments.main import cell_of, competitors
from spectrakan.experiments.scales import Scale

TABLE = "ablation"
CASE = "darcy2d"
PAPER_ROWS = {"amfno": "amfno", "no_gml": "amfno+kan", "default": "spectrakan"}
"""Our name of a row -> the paper's; `default` is the cell of the main table."""
ABLATIONS: dict[str, dict[str, object]] = {
    "amfno": {"model.token": "none", "model.gate_conditioning": "none"},
    "no_gml": {"model.use_gml": False},
    "no_coarse": {"model.coarse": False},
    "no_gates": {"model.gates": False, "model.gate_conditioning": "none"},
    "no_excitation": {"model.excitation": False},
}
"""What each ablation of the default takes away."""


def stages(scale: Scale) -> list[Stage]:
    """The default (from the main table) and each ablation, with the default's learning rate."""
    return [rates_stage(competitors(scale)), ablation_cells]


def ablation_cells(archive: Archive) -> list[Cell]:
    """The cells of the table; they keep size and rate of the default."""
    base = rate_choice(archive, CASE, "spectrakan")
    ablated = [
        Cell(TABLE, archive.scale, CASE, "spectrakan", variant, choices=with_choices(base, choices))
        for variant, choices in ABLATIONS.items()
    ]
    return [cell_of(archive, CASE, "spectrakan", table=MAIN), *ablated]
