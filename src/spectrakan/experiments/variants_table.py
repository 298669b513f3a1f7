"""A table of variants on one case, beside the default's cell of the main table and the paper's rows."""

from __future__ import annotations

from dataclasses import dataclass

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

CASE = "darcy2d"


@dataclass(frozen=True)
class Variant:
    """One row: its words, what it changes of a model's default, and the paper's name of it, if it has one."""

    label: str
    choices: dict[str, object]
    paper: str = ""
    model: str = "spectrakan"


@dataclass(frozen=True)
class VariantsTable:
    """Variants by name; `default` changes nothing and is the cell of the main table."""

    name: str
    published: str
    """The paper's table."""
    title: str
    corner: str
    note: str
    variants: dict[str, Variant]

    def stages(self, scale: Scale) -> list[Stage]:
        """The default (from the main table) and each variant, with the default's learning rate."""
        return [rates_stage(competitors(scale)), self.cells]

    def cells(self, archive: Archive) -> list[Cell]:
        """The cells of the table; they keep size and rate of the default."""
        changed = []
        for name, variant in self.variants.items():
            if name != "default":
                choices = with_choices(rate_choice(archive, CASE, variant.model), variant.choices)
                changed.append(Cell(self.name, archive.scale, CASE, variant.model, name, choices=choices))
        return [cell_of(archive, CASE, "spectrakan", table=MAIN), *changed]

    def tables(self, archive: Archive) -> list[Table]:
        """Each variant's error beside the paper's; nothing where no cell has a record."""
        results = [Results.of(archive, table) for table in (self.name, MAIN)]
        paper = paper_cell(self.published, CASE, "rmse", "64")
        rows = []
        for name, variant in self.variants.items():
            found = next((r for each in results if (r := each.find(CASE, variant.model, name))), None)
            theirs = paper.get(variant.paper)
            score = Score(None, paper=theirs) if found is None else found.metric("rmse", theirs)
            rows.append(Row(variant.label, (score,)))
        if all(isinstance(cell, Score) and cell.value is None for row in rows for cell in row.cells):
            return []
        return [Table(self.title, (Column("RMSE"),), tuple(rows), (self.note,), corner=self.corner)]
