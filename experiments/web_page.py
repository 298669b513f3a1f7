"""The report as one HTML page: tables of the records, figures, and where every number comes from."""

from __future__ import annotations

from experiments import catalog
from experiments.archive import Archive
from experiments.catalog import stages_of
from experiments.gallery import as_picture, read_plates
from experiments.record_figures import RECORD_FIGURES, TIME
from experiments.scales import SCALES
from spectrakan.report.page import Element, Paragraph, Picture, Section, page
from spectrakan.report.runs_page import origin_of

LEAD = (
    "Every number on this page was made from the {count} records in `results/{scale}/` by "
    "`python -m experiments.page_command --scale {scale}`; none was written by hand. Values in brackets are the "
    "paper's, of its own data, sizes and training budget: only ratios between models can be compared with ours. "
    "A click on a column's name sorts a table by it."
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
    "Learning rates": ("rates", ("rates",)),
}
"""For each section: the argument of `python -m experiments`, and the folders of the records."""
CASES = {"Falling droplet": ("droplet2d",), "Other resolutions": ("shallow_water2d",)}
"""Sections that are made from records of some cases only."""
SHORT = {
    "Main table": "Main",
    "Falling droplet": "Droplet",
    "Data efficiency": "Data",
    "Five-fold horizon": "Stability",
    "Error against time": "Time",
    "Accuracy against training seconds": "Cost",
    "Ablation: architecture": "Ablation",
    "Ablation: token": "Tokens",
    "Other resolutions": "Resolutions",
    "Learning rates": "Rates",
    "Trials on validation data": "Trials",
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
    made = catalog.sections(archive)
    parts = [_section(archive, each) for each in made]
    extra = [_pictures_only(archive, TIME), *_galleries(archive)]
    # The paper's slips and what is missing stand last.
    sections = [*parts[:-1], *extra, parts[-1], missing_section(archive)]
    shown = [section for section in sections if section is not None]
    return page(f"SpectraKAN against its baselines: scale {archive.scale}", lead, shown, "Made by spectrakan.")


def missing_section(archive: Archive) -> Section:
    """Which cells of the tables have no record yet, and why if they failed; for scales that can be run."""
    items = []
    for name in (
        ("rates", "main", "ablation", "tokens", "data-efficiency", "fields") if archive.scale in SCALES else ()
    ):
        stages = stages_of([name], SCALES[archive.scale])
        cells = dict.fromkeys(cell for stage in stages for cell in stage(archive))
        own = [cell for cell in cells if cell.table == name.replace("-", "_")]
        absent = {cell.name: archive.failure(cell) for cell in own if archive.record(cell) is None}
        if absent:
            # Failures come first: they need a repair.
            named = [f"{cell} (failed: {why})" for cell, why in absent.items() if why]
            named += [cell for cell, why in absent.items() if not why]
            rest = f" and {len(absent) - LISTED} more" if len(absent) > LISTED else ""
            items.append(f"**{name}**: {len(absent)} of {len(own)} cells: {', '.join(named[:LISTED])}{rest}.")
    if not (archive.folder / "figures").is_dir():
        items.append(f"**figures**: draw them with `python -m experiments figures --scale {archive.scale}`.")
    if not items:
        return Section("What is missing", [Paragraph("Nothing: every cell has a record and the figures are drawn.")])
    note = Paragraph("This page was made from part of the campaign. Missing:", note=True)
    listed = Paragraph("\n".join(f"- {' '.join(item.split())}" for item in items))
    return Section("What is missing", [note, listed], SHORT["What is missing"])


def _section(archive: Archive, part: catalog.Section) -> Section:
    elements: list[Element] = [Paragraph("\n".join(part.sentences))]
    elements += _drawn(archive, part.title)
    for table in part.tables:
        elements.append(table)
    elements += _origins(archive, part.title)
    return Section(part.title, elements, SHORT.get(part.title, ""))


def _drawn(archive: Archive, title: str) -> list[Picture]:
    """Figures from records, drawn anew because records may be newer than figures in files."""
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
    return [origin_of(records, f"python -m experiments {command} --scale {archive.scale}")] if records else []


def _galleries(archive: Archive) -> list[Section]:
    """The figures that were drawn from trained models, by section."""
    found: dict[str, list[Element]] = {}
    for plate, picture in read_plates(archive.folder / "figures"):
        if plate.section not in RECORD_FIGURES:
            found.setdefault(plate.section, []).append(picture)
    command = f"python -m experiments figures --scale {archive.scale}"
    return [
        Section(title, [*pictures, Paragraph(f"Drawn by `{command}`.")], SHORT.get(title, ""))
        for title, pictures in found.items()
    ]
