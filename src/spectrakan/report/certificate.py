"""A certificate as a page one can read."""

from __future__ import annotations

from collections.abc import Sequence

from spectrakan.report.elements import DataTable, Element, Paragraph
from spectrakan.report.elements import Entry as Cell
from spectrakan.report.page import Section, page
from spectrakan.theory.certificate import Certificate, Entry

CERTIFIED = (
    "A certified bound is proved for every such perturbation; an estimated one was measured and may be exceeded."
)
ATTACKED = "'Attacked' is the worst that random pairs and gradient ascent reached: no bound may lie below it."


def certificate_rows(found: Certificate) -> list[list[str]]:
    """The table of entries: name, bound, worst found, their ratio, status; its head first."""
    head = ["quantity", "bound", "attacked", "ratio", "status"]
    return [head, *([name, *_cells(entry, found, name)] for name, entry in found.entries.items())]


def certificate_page(title: str, found: Certificate) -> str:
    """The page of one certificate."""
    cells = " x ".join(map(str, found.resolution))
    region = f"Around {found.num_inputs} inputs of {cells} cells, every cell perturbed by at most {found.radius:g}"
    refuted = f"REFUTED by an attack: {', '.join(found.beaten)}. These bounds are wrong."
    held = "All bounds held." if not found.beaten else refuted
    lead = [Paragraph(f"{region} in normalised units, parameters held."), Paragraph(held, note=bool(found.beaten))]
    head, *rows = certificate_rows(found)
    bounds: list[Element] = [
        Paragraph(CERTIFIED),
        Paragraph(ATTACKED),
        *map(Paragraph, found.notes),
        _table(head, rows),
    ]
    meanings = _table(["quantity", "what it is"], [[name, entry.meaning] for name, entry in found.entries.items()])
    sections = [Section("Bounds", bounds), Section("What they mean", [meanings])]
    if found.edges:
        sections.append(Section("Edges of the KAN", [_edge_table(found)]))
    if found.constants:
        constants = [[name, f"{value:.4g}"] for name, value in found.constants.items()]
        sections.append(Section("Constants of the theorem", [_table(["constant", "value"], constants)]))
    return page(f"Certificate of {title}", lead, sections)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> DataTable:
    return DataTable(head, [[Cell(text) for text in row] for row in rows])


def _edge_table(found: Certificate) -> DataTable:
    """The steepest edge of every layer by each way of bounding it."""
    steepest = [layer.largest() for layer in found.edges]
    rows = [
        [str(number + 1), *(f"{steep[kind]:.4g}" for kind in ("lemma", "exact", "on_region"))]
        for number, steep in enumerate(steepest)
    ]
    return _table(["layer", "Lemma 3.1", "exact", "exact on what the region reaches"], rows)


def _cells(entry: Entry, found: Certificate, name: str) -> list[str]:
    value = f"{entry.value:.4g}"
    if name == "modulation_paper" and found.log_modulation_paper is not None and value == "inf":
        value = f"exp({found.log_modulation_paper:.1f})"
    attacked = "" if entry.attacked is None else f"{entry.attacked:.4g}"
    ratio = "" if entry.ratio is None else f"{entry.ratio:.3g}"
    return [value, attacked, ratio, entry.status]
