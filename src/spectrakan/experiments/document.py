"""The page of results, written from the records alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spectrakan.experiments import (
    ablation,
    appendix,
    costs,
    data_efficiency,
    droplet,
    main,
    scorecard,
    search,
    stability,
    super_resolution,
    tokens,
)
from spectrakan.experiments.archive import Archive
from spectrakan.report.export import to_markdown
from spectrakan.report.published import paper_slips
from spectrakan.report.table import Table

SECTIONS: dict[str, Callable[[Archive], list[Table]]] = {
    "Main table": main.tables,
    "Falling droplet": droplet.tables,
    "Ablation: architecture": ablation.ABLATION.tables,
    "Ablation: token": tokens.TOKENS.tables,
    "Other resolutions": super_resolution.tables,
    "Appendix": appendix.tables,
    "Accuracy against training seconds": costs.tables,
    "Data efficiency": data_efficiency.tables,
    "Five-fold horizon": stability.tables,
    "Trials on validation data": search.tables,
}
"""The tables of the page, in their order."""

HEAD = """# Results at scale `{scale}`

Made by `spectrakan reproduce all --scale {scale} --docs docs/results.md` from {count} records in `results/{scale}/`;
no number here was written by hand. [protocol.md](protocol.md) says how models were compared. The paper's values, in
brackets, are of its own data, sizes and training budget: only ratios between models can be laid beside ours.
"""


@dataclass(frozen=True)
class Section:
    """A heading, sentences and tables."""

    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]


def sections(archive: Archive) -> list[Section]:
    """What the records say, part by part; parts without a record are left out."""
    made = [Section("What had to be shown", tuple(f"- {bar}" for bar in scorecard.bars(archive)), ())]
    for title, tables in SECTIONS.items():
        found = tables(archive)
        if found:
            told = appendix.summary(archive) if title == "Appendix" else None
            made.append(Section(title, () if told is None else (told,), tuple(found)))
    made.append(Section("Slips of the paper", tuple(f"- {slip}" for slip in paper_slips()), ()))
    return made


def results_page(archive: Archive) -> str:
    """The whole page as Markdown."""
    count = sum(1 for _ in archive.folder.glob("*/*.json"))
    parts = [HEAD.format(scale=archive.scale, count=count)]
    for section in sections(archive):
        parts.append(f"## {section.title}\n")
        if section.sentences:
            parts.append("\n".join(section.sentences) + "\n")
        parts += [f"### {table.title}\n\n{to_markdown(table)}" for table in section.tables]
    return "\n".join(parts)
