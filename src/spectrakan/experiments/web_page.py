"""The report as one HTML page: what the records say, the figures, and where every number comes from."""

from __future__ import annotations

from spectrakan.experiments import document
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.catalog import stages_of
from spectrakan.experiments.record_figures import RECORD_FIGURES, TIME
from spectrakan.experiments.scales import scale_named
from spectrakan.report.elements import Element, Listing, Paragraph, Picture
from spectrakan.report.gallery import as_picture, read_plates
from spectrakan.report.page import Section, page
from spectrakan.report.provenance import origin_of
from spectrakan.report.web_table import table_elements, text_elements

LEAD = (
    "Every number on this page was made from the {count} records in `results/{scale}/` by "
    "`spectrakan report --scale {scale}`; none was written by hand. Values in brackets are the paper's, of its own "
    "data, sizes and training budget: only ratios between models can be laid beside ours. A press on a column's name "
    "sorts a table by it."
)
SOURCES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Main table": ("main", ("main",)),
    "Falling droplet": ("droplet", ("main",)),
    "Ablation: architecture": ("ablation", ("ablation", "main")),
    "Ablation: token": ("tokens", ("tokens", "main")),
    "Other resolutions": ("super-resolution", ("main",)),
    "Appendix": ("appendix", ("main",)),
    "Accuracy against training seconds": ("main", ("main",)),
    "Data efficiency": ("data-efficiency", ("data_efficiency", "main")),
    "Five-fold horizon": ("stability", ("main",)),
    "Error against time": ("main", ("main",)),
}
"""For each section: what `spectrakan reproduce` is asked for, and the folders of the records."""
CASES = {"Falling droplet": ("droplet2d",), "Other resolutions": ("shallow_water2d",)}
"""Sections that are made from records of some cases only."""
SHORT = {
    "What had to be shown": "Verdict",
    "Main table": "Main",
    "Falling droplet": "Droplet",
    "Data efficiency": "Data",
    "Five-fold horizon": "Stability",
    "Error against time": "Time",
    "Accuracy against training seconds": "Cost",
    "Ablation: architecture": "Ablation",
    "Ablation: token": "Tokens",
    "Other resolutions": "Resolutions",
    "Maps of predictions": "Maps",
    "What SpectraKAN has learned": "Learned",
    "Slips of the paper": "Slips",
    "What is missing": "Missing",
}
LISTED = 12
"""Missing cells of a table that are named one by one."""


def web_page(archive: Archive) -> str:
    """The whole page; parts without records are left out, and what is missing is listed."""
    count = sum(1 for _ in archive.folder.glob("*/*-s*.json"))
    lead = [Paragraph(LEAD.format(count=count, scale=archive.scale))]
    made = document.sections(archive)
    told = [_section(archive, each) for each in made]
    extra = [_pictures_only(archive, TIME), *_galleries(archive)]
    # The paper's slips and what is missing stand last.
    sections = [*told[:-1], *extra, told[-1], missing_section(archive)]
    shown = [section for section in sections if section is not None]
    return page(f"SpectraKAN against its baselines: scale {archive.scale}", lead, shown, "Made by spectrakan.")


def missing_section(archive: Archive) -> Section:
    """Which cells of the tables have no record yet, and why if they failed."""
    items = []
    for name in ("rates", "main", "ablation", "tokens", "data-efficiency", "fields"):
        cells = dict.fromkeys(
            cell for stage in stages_of([name], scale_named(archive.scale)) for cell in stage(archive)
        )
        own = [cell for cell in cells if cell.table == name.replace("-", "_")]
        absent = {cell.name: archive.failure(cell) for cell in own if archive.record(cell) is None}
        if absent:
            # What failed comes first: it needs more than patience.
            named = [f"{cell} (failed: {why})" for cell, why in absent.items() if why]
            named += [cell for cell, why in absent.items() if not why]
            rest = f" and {len(absent) - LISTED} more" if len(absent) > LISTED else ""
            items.append(f"**{name}**: {len(absent)} of {len(own)} cells: {', '.join(named[:LISTED])}{rest}.")
    if not (archive.folder / "figures").is_dir():
        items.append(f"**figures**: draw them with `spectrakan reproduce figures --scale {archive.scale}`.")
    if not items:
        return Section("What is missing", [Paragraph("Nothing: every cell has a record and the figures are drawn.")])
    note = Paragraph("This page was made from part of the campaign. Not there yet:", note=True)
    return Section("What is missing", [note, Listing(items)], SHORT["What is missing"])


def _section(archive: Archive, part: document.Section) -> Section:
    elements: list[Element] = text_elements("\n".join(part.sentences))
    elements += _drawn(archive, part.title)
    for table in part.tables:
        elements += table_elements(table)
    elements += _origins(archive, part.title)
    return Section(part.title, elements, SHORT.get(part.title, ""))


def _drawn(archive: Archive, title: str) -> list[Picture]:
    """Figures from records are drawn anew, for records may have come since they were kept."""
    drawn = RECORD_FIGURES[title](archive) if title in RECORD_FIGURES else ()
    return [as_picture(plate, figure) for plate, figure in drawn]


def _pictures_only(archive: Archive, title: str) -> Section | None:
    pictures = _drawn(archive, title)
    return Section(title, [*pictures, *_origins(archive, title)], SHORT.get(title, "")) if pictures else None


def _origins(archive: Archive, title: str) -> list[Element]:
    if title not in SOURCES:
        return []
    command, tables = SOURCES[title]
    cases = CASES.get(title)
    records = [
        record
        for table in tables
        for record in archive.records(table)
        if cases is None or record["details"]["case"] in cases
    ]
    return [origin_of(records, f"spectrakan reproduce {command} --scale {archive.scale}")] if records else []


def _galleries(archive: Archive) -> list[Section]:
    """The figures that were drawn from trained models, by section."""
    found: dict[str, list[Element]] = {}
    for plate, picture in read_plates(archive.folder / "figures"):
        if plate.section not in RECORD_FIGURES:
            found.setdefault(plate.section, []).append(picture)
    command = f"spectrakan reproduce figures --scale {archive.scale}"
    return [
        Section(title, [*pictures, Paragraph(f"Drawn by `{command}`.")], SHORT.get(title, ""))
        for title, pictures in found.items()
    ]
