"""A certificate as an HTML page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spectrakan.report.page import DataTable, Entry, Paragraph, Section, page
from spectrakan.theory.certificate import Certificate

CERTIFIED = (
    "A certified bound is proved for every such perturbation; an estimated one was measured and may be exceeded."
)
ATTACKED = "'Attacked' is the worst that random pairs and gradient ascent reached: no bound may lie below it."


def certificate_rows(found: Certificate) -> list[list[str]]:
    """The table of entries: name, bound, worst found, their ratio, status; its head first."""
    rows = [["quantity", "bound", "attacked", "ratio", "status"]]
    for name, entry in found.entries.items():
        bound = f"{entry.value:.4g}" if math.isfinite(entry.value) else "no finite bound"
        if name == "modulation_paper" and found.log_modulation_paper is not None and math.isinf(entry.value):
            bound = f"exp({found.log_modulation_paper:.1f})"
        attacked = "" if entry.attacked is None else f"{entry.attacked:.4g}"
        ratio = "" if entry.ratio is None else f"{entry.ratio:.3g}"
        rows.append([name, bound, attacked, ratio, entry.status])
    return rows


def certificate_page(title: str, found: Certificate) -> str:
    """The page of one certificate."""
    cells = " x ".join(map(str, found.resolution))
    region = f"Around {found.num_inputs} inputs of {cells} cells, every cell perturbed by at most {found.radius:g}"
    refuted = f"REFUTED by an attack: {', '.join(found.beaten)}. These bounds are wrong."
    held = "All bounds held." if not found.beaten else refuted
    lead = [
        Paragraph(f"{found.sentence}."),
        Paragraph(f"{region} in normalised units, parameters held."),
        Paragraph(held, note=bool(found.beaten)),
    ]
    notes = map(Paragraph, (CERTIFIED, ATTACKED, *found.notes))
    meanings = [[name, entry.meaning] for name, entry in found.entries.items()]
    sections = [
        Section("Bounds", [*notes, _table(*certificate_rows(found))]),
        Section("What they mean", [_table(["quantity", "what it is"], *meanings)]),
    ]
    if found.edges:
        head = ["layer", "Lemma 3.1", "exact", "exact on what the region reaches"]
        steepest = [layer.largest() for layer in found.edges]
        rows = [
            [str(number), *(f"{steep[kind]:.4g}" for kind in ("lemma", "exact", "on_region"))]
            for number, steep in enumerate(steepest, start=1)
        ]
        sections.append(Section("Edges of the KAN", [_table(head, *rows)]))
    if found.constants:
        constants = [[name, f"{value:.4g}"] for name, value in found.constants.items()]
        sections.append(Section("Constants of the theorem", [_table(["constant", "value"], *constants)]))
    return page(f"Certificate of {title}", lead, sections)


def _table(head: Sequence[str], *rows: Sequence[str]) -> DataTable:
    return DataTable(head, [[Entry(text) for text in row] for row in rows])
