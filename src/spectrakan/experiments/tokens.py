"""What the token is made of and by: table (b) of the paper.

On Darcy flow the centre or the mean of the input is one number, so these tokens hold one number too.
"""

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

TABLE = "tokens"
CASE = "darcy2d"
PAPER_ROWS = {
    "token_mlp": "token=mlp",
    "token_center": "token=center",
    "token_mean": "token=mean",
    "default": "token=kan",
}
"""Our name of a row -> the paper's; `default` is the cell of the main table."""
TOKENS: dict[str, dict[str, object]] = {
    "token_mlp": {"model.token": "mlp"},
    "token_center": {"model.token": "raw", "model.pool": "center"},
    "token_mean": {"model.token": "raw", "model.pool": "mean"},
}
LABELS = {
    "token_mlp": "MLP",
    "token_center": "data (center)",
    "token_mean": "data (mean)",
    "default": "KAN (SpectraKAN)",
}
NOTE = (
    "In brackets the paper's value. Rows without spread are one seed, and all have the default's size and learning "
    "rate. Centre and mean of Darcy's input are one number each, so those tokens hold one number."
)


def stages(scale: Scale) -> list[Stage]:
    """The default (from the main table) and each other token, with the default's learning rate."""
    return [rates_stage(competitors(scale)), token_cells]


def token_cells(archive: Archive) -> list[Cell]:
    """The cells of the table."""
    base = rate_choice(archive, CASE, "spectrakan")
    others = [
        Cell(TABLE, archive.scale, CASE, "spectrakan", variant, choices=with_choices(base, choices))
        for variant, choices in TOKENS.items()
    ]
    return [cell_of(archive, CASE, "spectrakan", table=MAIN), *others]


def tables(archive: Archive) -> list[Table]:
    """The default and what is left without its parts, beside the paper's rows."""
    results = [Results.of(archive, table) for table in (TABLE, MAIN)]
    paper = paper_cell("ablation_token", CASE, "rmse", "64")
    rows = []
    for variant in (*TOKENS, "default"):
        found = next((r for each in results if (r := each.find(CASE, "spectrakan", variant))), None)
        theirs = paper.get(PAPER_ROWS.get(variant, ""))
        score = Score(None, paper=theirs) if found is None else found.metric("rmse", theirs)
        rows.append(Row(LABELS[variant], (score,)))
    if all(isinstance(cell, Score) and cell.value is None for row in rows for cell in row.cells):
        return []
    return [Table("Ablation (b), token: RMSE on Darcy flow", (Column("RMSE"),), tuple(rows), (NOTE,), corner="token")]
