"""What the parts of SpectraKAN are worth: tables (a) and (b) of the paper, and further parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.archive import Archive
from experiments.campaign import Stage
from experiments.cells import Cell, as_overrides
from experiments.main import TABLE as MAIN
from experiments.scales import Scale
from experiments.summaries import Results
from spectrakan.report.published import paper_cell
from spectrakan.report.table import Column, Row, Score, Table

CASE = "darcy2d"


@dataclass(frozen=True)
class Variant:
    """One row: its words, what it changes of a model's default, and the paper's name of it, if it has one."""

    label: str
    settings: Mapping[str, object] = field(default_factory=dict)
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
    variants: Mapping[str, Variant]

    def stages(self, scale: Scale) -> list[Stage]:
        """The default (from the main table) and each variant, with size and learning rate of the default."""
        return [self.cells]

    def cells(self, archive: Archive) -> list[Cell]:
        """The cells of the table."""
        changed = [
            Cell(self.name, archive.scale, CASE, variant.model, name, overrides=as_overrides(variant.settings))
            for name, variant in self.variants.items()
            if name != "default"
        ]
        return [Cell(MAIN, archive.scale, CASE, "spectrakan"), *changed]

    def tables(self, archive: Archive) -> list[Table]:
        """Each variant's error beside the paper's; nothing where no cell has a record.

        Records of variants that are not listed here, of an earlier campaign, are shown by their own names.
        """
        own, main = (Results.of(archive, table) for table in (self.name, MAIN))
        paper = paper_cell(self.published, CASE, "rmse", "64")
        listed = {(variant.model, name): variant for name, variant in self.variants.items()}
        others = {key: Variant(f"{key[1]} ({key[0]})") for key in own.variants(CASE) if key not in listed}
        rows = []
        for (model, name), variant in (listed | others).items():
            found = own.find(CASE, model, name) or main.find(CASE, model, name)
            theirs = paper.get(variant.paper)
            score = Score(None, paper=theirs) if found is None else found.metric("rmse", theirs)
            rows.append(Row(variant.label, (score,)))
        if all(isinstance(cell, Score) and cell.value is None for row in rows for cell in row.cells):
            return []
        return [Table(self.title, (Column("RMSE"),), tuple(rows), (self.note,), corner=self.corner)]


ABLATION = VariantsTable(
    name="ablation",
    published="ablation_architecture",
    title="Ablation (a), architecture: RMSE on Darcy flow",
    corner="model",
    note="In brackets the paper's value; rows without it are ours alone. Rows without spread are one seed, and all "
    "have size and learning rate of their model's default.",
    variants={
        "amfno": Variant("AMFNO: no token", {"model.token": "none"}, "amfno"),
        "no_gml": Variant("AMFNO + KAN, no GML", {"model.use_gml": False}, "amfno+kan"),
        "coarse": Variant("with a coarse branch", {"model.coarse_num_layers": 4}),
        "no_gates": Variant("no spectral gates", {"model.gates": False}),
        "no_squeeze_excite": Variant("no squeeze-excitation", {"model.squeeze_excite": "none"}),
        "conditioned": Variant("token acts on the trunk too", {"model.conditioning": "both"}),
        "periodic": Variant("periodic basis", {"model.basis": "fourier"}),
        "no_output_filter": Variant("no output filter", {"model.noise_level": 0.0}),
        "direct": Variant("no mean field: predicts the pressure itself", {"model.predict": "direct"}),
        "ffno_plain": Variant(
            "F-FNO without mean field and output filter",
            {"model.predict": "direct", "model.noise_level": 0.0},
            model="ffno",
        ),
        "default": Variant("SpectraKAN", paper="spectrakan"),
    },
)

TOKENS = VariantsTable(
    name="tokens",
    published="ablation_token",
    title="Ablation (b), token: RMSE on Darcy flow",
    corner="token",
    note="In brackets the paper's value. Rows without spread are one seed, and all have the default's size and "
    "learning rate. Centre and mean of Darcy's input are one number each, so those tokens hold one number.",
    variants={
        "token_mlp": Variant("MLP", {"model.token": "mlp"}, "token=mlp"),
        "token_center": Variant("data (center)", {"model.token": "raw", "model.pool": "center"}, "token=center"),
        "token_mean": Variant("data (mean)", {"model.token": "raw", "model.pool": "mean"}, "token=mean"),
        "default": Variant("KAN (SpectraKAN)", paper="token=kan"),
    },
)
