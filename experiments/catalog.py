"""All tables: which cells they need, and the page of results that is written from their records alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments import (
    ablation,
    appendix,
    attribution,
    costs,
    data_efficiency,
    derived,
    learning_rates,
    main,
    mean_drift,
    out_of_the_box,
    probe,
    trials,
)
from experiments.archive import Archive
from experiments.campaign import Stage
from experiments.scales import Scale
from spectrakan.errors import ConfigError, nearest
from spectrakan.report.table import Table, to_markdown


def competitors(scale: Scale) -> dict[str, list[tuple[str, str]]]:
    """Models of each case, as (model, variant), whose learning rates are chosen."""
    families = [case for case in attribution.family_cases() if case in scale.cases]
    return {
        **{case: main.competitors(scale) for case in scale.main_cases},
        **{case: attribution.family_competitors() for case in families},
    }


TABLES: dict[str, Callable[[Scale], list[Stage]]] = {
    "rates": lambda scale: learning_rates.stages(scale, competitors(scale)),
    "main": main.stages,
    "droplet": lambda scale: main.stages(scale, ["droplet2d"]),
    "ablation": ablation.ABLATION.stages,
    "tokens": ablation.TOKENS.stages,
    "super-resolution": lambda scale: main.stages(scale, ["shallow_water2d"]),
    "appendix": main.stages,
    "data-efficiency": data_efficiency.stages,
    "stability": main.stages,
    "fields": main.fields_stages,
    "families": attribution.family_stages,
    "attribution": attribution.stages,
    "unseen": out_of_the_box.stages,
}
"""Stages of each table. Droplet, super-resolution, appendix and stability are made from cells of the main table."""

SECTIONS: dict[str, Callable[[Archive], list[Table]]] = {
    "Main table": main.tables,
    "Falling droplet": derived.droplet_tables,
    "Ablation: architecture": ablation.ABLATION.tables,
    "Ablation: token": ablation.TOKENS.tables,
    "Other resolutions": derived.resolution_tables,
    "Appendix": appendix.tables,
    "Accuracy against training seconds": costs.tables,
    "Data efficiency": data_efficiency.tables,
    "Five-fold horizon": derived.stability_tables,
    "Families and attribution": attribution.tables,
    "What the token knows": probe.tables,
    "Out of the box": out_of_the_box.tables,
    "Spatial means": mean_drift.tables,
    "Learning rates": learning_rates.tables,
    "Trials on validation data": trials.tables,
}
"""The tables of the page, in their order."""

HEAD = """# Results at scale `{scale}`

Made by `python -m experiments all --scale {scale} --docs docs/{page}` from {count} records in `results/{scale}/`;
no number here was written by hand. [protocol.md](protocol.md) states how models are compared. The paper's values, in
brackets, are of its own data, sizes and training budget: only ratios between models can be compared with ours.
"""


@dataclass(frozen=True)
class Section:
    """A heading, sentences and tables."""

    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]


def stages_of(names: Sequence[str], scale: Scale) -> list[Stage]:
    """The stages of some tables, one after the other; `all` stands for every one."""
    wanted = list(TABLES) if "all" in names else list(names)
    for name in wanted:
        if name not in TABLES:
            raise ConfigError(f"unknown table '{name}'{nearest(name, TABLES)}; known: {', '.join(TABLES)}, all")
    return [stage for name in wanted for stage in TABLES[name](scale)]


def sections(archive: Archive) -> list[Section]:
    """The tables of the records, part by part; parts without a record are left out."""
    made = []
    for title, tables in SECTIONS.items():
        found = tables(archive)
        if found:
            summary = appendix.summary(archive) if title == "Appendix" else None
            made.append(Section(title, () if summary is None else (summary,), tuple(found)))
    made.append(Section("Slips of the paper", tuple(f"- {slip}" for slip in appendix.paper_slips()), ()))
    return made


def results_page(archive: Archive) -> str:
    """The whole page as Markdown."""
    count = sum(1 for _ in archive.folder.glob("*/*.json"))
    page = "results.md" if archive.scale == "small" else f"results_{archive.scale}.md"
    parts = [HEAD.format(scale=archive.scale, count=count, page=page)]
    for section in sections(archive):
        parts.append(f"## {section.title}\n")
        if section.sentences:
            parts.append("\n".join(section.sentences) + "\n")
        parts += [f"### {table.title}\n\n{to_markdown(table)}" for table in section.tables]
    return "\n".join(parts)
