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
