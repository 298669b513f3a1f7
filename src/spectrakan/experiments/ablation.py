"""What the parts of SpectraKAN are worth: table (a) of the paper, and the parts it does not ablate."""

from __future__ import annotations

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import Stage
from spectrakan.experiments.cells import Cell, with_choices
from spectrakan.experiments.learning_rates import rate_choice, rates_stage
from spectrakan.experiments.main import TABLE as MAIN
from spectrakan.experiments.main import cell_of, competitors
from spectrakan.experiments.scales import Scale
from spectrakan.experiments.summaries import Results
from spectrakan.report.published import paper_cell
from spectrakan.report.table import Column, Row, Score, Table

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
LABELS = {
    "amfno": "AMFNO: no token",
    "no_gml": "AMFNO + KAN, no GML",
    "no_coarse": "no coarse branch",
    "no_gates": "no spectral gates",
    "no_excitation": "no squeeze-excitation",
    "default": "SpectraKAN",
}
NOTE = (
    "In brackets the paper's value; rows without it are ours alone. Rows without spread are one seed, and all have "
    "the default's size and learning rate."
)


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


def tables(archive: Archive) -> list[Table]:
    """The default and what is left without its parts, beside the paper's rows."""
    results = [Results.of(archive, table) for table in (TABLE, MAIN)]
    paper = paper_cell("ablation_architecture", CASE, "rmse", "64")
    rows = []
    for variant in (*ABLATIONS, "default"):
        found = next((r for each in results if (r := each.find(CASE, "spectrakan", variant))), None)
        theirs = paper.get(PAPER_ROWS.get(variant, ""))
        score = Score(None, paper=theirs) if found is None else found.metric("rmse", theirs)
        rows.append(Row(LABELS[variant], (score,)))
    if all(isinstance(cell, Score) and cell.value is None for row in rows for cell in row.cells):
        return []
    return [
        Table(
            "Ablation (a), architecture: RMSE on Darcy flow", (Column("RMSE"),), tuple(rows), (NOTE,), corner="model"
        )
    ]
