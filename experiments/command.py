"""`python -m experiments`: the tables of the paper, cell by cell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from experiments import attribution, trials
from experiments.archive import Archive
from experiments.campaign import Execution, Outcome, Stage, run_stages, sort_out
from experiments.catalog import TABLES, results_page, stages_of
from experiments.cells import Cell
from experiments.costs import Estimator, measure_steps, span
from experiments.figures import PLANS, draw_figures
from experiments.freeze import freeze
from experiments.frozen import SCALES as FROZEN_SCALES
from experiments.mean_drift import measure_means
from experiments.probe import measure_probe
from experiments.probe import tables as probe_tables
from experiments.scales import Scale, scale_named
from experiments.trials import measure_development
from spectrakan.cli.cluster import connected
from spectrakan.errors import ConfigError, RunError, nearest
from spectrakan.models.catalog import config_class
from spectrakan.report.table import to_markdown
from spectrakan.storage import write_text_atomically

FIGURES, STEPS, DEVELOPMENT, FREEZE = "figures", "steps", "development", "freeze"
MEANS, CONDITIONING, PROBE = "means", "conditioning", "probe"


def reproduce(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE ...] [KEY=VALUE ...]", help="Tables, `all`, and settings.", show_default=False
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke, short, long or paper.")] = "short",
    jobs: Annotated[int, typer.Option(min=0, help="Cells side by side; 0 runs them in this process.")] = 1,
    cluster: Annotated[
        str, typer.Option(help="Dask cluster: local:N processes, or tcp://HOST:PORT.", show_default="no cluster")
    ] = "",
    results: Annotated[Path, typer.Option(help="Folder of the records.")] = Path("results"),
    cache: Annotated[
        Path | None, typer.Option(help="Folder of data and weights.", show_default="RESULTS/.cache")
    ] = None,
    case: Annotated[list[str] | None, typer.Option("--case", "--task", help="Only these tasks.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only these models; MODEL/VARIANT names a variant.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only these seeds.")] = None,
    validation_only: Annotated[
        bool, typer.Option("--validation-only", help="Trials on validation data; test samples stay unread.")
    ] = False,
    label: Annotated[str, typer.Option(help="Name of a trial, with --validation-only or `development`.")] = "",
    train_only: Annotated[
        bool, typer.Option("--train-only", help="Train and keep the weights; a later run reads the test and scores.")
    ] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="Run cells again whose settings changed.")] = False,
    figure_format: Annotated[
        list[str] | None, typer.Option(help="Further formats of figures: svg, pdf.", show_default="PNG alone")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Page to write from all records, such as docs/results.md.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what is missing and its cost; run nothing.")
    ] = False,
) -> None:
    """Run the cells of the paper's tables that have no record yet; it can be stopped and started again at any time.

    \b
    python -m experiments all --scale smoke                    everything, tiny, in seconds
    python -m experiments main --scale short --jobs 2          the main table on two cores
    python -m experiments main --cluster tcp://head:8786       on the workers of a Dask scheduler
    python -m experiments development --model ffno             trained weights on samples that are no test
    python -m experiments --validation-only --task droplet2d --label wide model.width=48
    python -m experiments probe                                what tokens know of hidden parameters
    python -m experiments freeze families                      settles code and settings before the first test
    """
    chosen = scale_named(scale)
    archive = Archive(results, cache or results / ".cache", scale)
    wanted = [word for word in words or [] if "=" not in word] or ["all"]
    overrides = [word for word in words or [] if "=" in word]
    only = Only.checked(chosen, case, model, seed)
    if wanted[0] == FREEZE:
        print(f"{freeze(archive, _frozen_cells(archive, wanted[1:], only), _tell)}: commit it, then run the tables")
        return
    if wanted == [CONDITIONING]:
        print(to_markdown(attribution.overview(archive)))
        return
    if wanted == [MEANS]:
        measure_means(archive, only.cases, tell=_tell)
        return
    if wanted == [PROBE]:
        measure_probe(archive, tell=_tell)
        print("\n".join(to_markdown(table) for table in probe_tables(archive)))
        return
    if validation_only:
        named = only.models or (("spectrakan", "default"),)
        pairs = [(name, variant or "default") for name, variant in named]
        stages = [trials.stage(only.cases or chosen.main_cases, pairs, only.seeds or (0,), overrides, label)]
    elif overrides or (label and DEVELOPMENT not in wanted):
        raise ConfigError("settings and --label change a trial: give them with --validation-only")
    else:
        tables = [word for word in wanted if word not in (FIGURES, STEPS, DEVELOPMENT)]
        stages = [only.of(stage) for stage in stages_of(tables, chosen)]
    if dry_run:
        _list(stages, archive)
        return
    with connected(cluster) if cluster else nullcontext() as client:
        outcome = run_stages(stages, archive, Execution(jobs, refresh, train_only, _tell, client))
    if stages and outcome.empty:
        raise ConfigError(f"no cell of {', '.join(wanted)} at scale {scale} fits --task, --model and --seed")
    print(f"{scale}: {outcome}")
    models = [name for name, _ in only.models]
    if not validation_only and {STEPS, "all"} & set(wanted):
        measure_steps(archive, models=models, tell=_tell)
    if not validation_only and {FIGURES, "all"} & set(wanted):
        drawn = [name for name in PLANS if name in only.cases] if only.cases else None
        draw_figures(archive, cases=drawn, formats=figure_format or (), tell=_tell)
    if not validation_only and DEVELOPMENT in wanted:
        measure_development(archive, cases=only.cases, models=models, label=label, tell=_tell)
    if docs is not None:
        write_text_atomically(docs, results_page(archive))
        print(f"{docs}: tables from the records in {archive.folder}")
    if outcome.failed:
        raise RunError(f"{len(outcome.failed)} cells failed: {', '.join(outcome.failed)}")


@dataclass(frozen=True)
class Only:
    """The cells that were asked for: empty parts leave all."""

    cases: Sequence[str]
    models: Sequence[tuple[str, str]]
    """Pairs of model and variant; an empty variant stands for all."""
    seeds: Sequence[int]

    @classmethod
    def checked(
        cls, scale: Scale, cases: list[str] | None, models: list[str] | None, seeds: list[int] | None
    ) -> Only:
        """The restrictions of a command; an unknown name raises `ConfigError` with the nearest."""
        for case in cases or []:
            if case not in scale.cases:
                known = ", ".join(scale.cases)
                raise ConfigError(
                    f"scale {scale.name} has no task '{case}'{nearest(case, scale.cases)}; known: {known}"
                )
        parts = [text.partition("/") for text in models or []]
        for name, _, _ in parts:
            config_class(name)
        return cls(cases or (), [(name, variant) for name, _, variant in parts], seeds or ())

    def of(self, stage: Stage) -> Stage:
        """A stage with only these cells."""
        return lambda archive: [cell for cell in stage(archive) if self._has(cell)]

    def _has(self, cell: Cell) -> bool:
        fits = not self.models or bool({(cell.model, cell.variant), (cell.model, "")} & set(self.models))
        return fits and (not self.cases or cell.case in self.cases) and (not self.seeds or cell.seed in self.seeds)


def _list(stages: Sequence[Stage], archive: Archive) -> None:
    """Missing cells with what they would cost, measured on this machine."""
    outcome, estimator, costs = Outcome(), Estimator(), dict[Cell, float]()
    for stage in stages:
        sorted_out, missing = sort_out(stage(archive), archive)
        outcome.add(sorted_out)
        for cell in missing:
            if cell not in costs:
                costs[cell] = estimator.seconds(cell)
                print(f"missing  {cell.table} {cell.name}  about {span(costs[cell])}", flush=True)
    total = span(sum(costs.values()))
    there = "" if outcome.empty else f", {outcome}"
    print(f"{len(costs)} cells missing{there}; about {total} on one core of this machine, from measured steps")
    print("Cells that follow from records still missing, such as seeds of the strongest baselines, are not counted.")


def _frozen_cells(archive: Archive, tables: Sequence[str], only: Only) -> list[Cell]:
    """Every cell of the tables (all: no table named) with a test at the scales under a freeze."""
    archives = [replace(archive, scale=name) for name in FROZEN_SCALES]
    tables = tables or [name for name in TABLES if name != "rates"]
    stages = [(only.of(stage), each) for each in archives for stage in stages_of(tables, scale_named(each.scale))]
    cells = [cell for stage, each in stages for cell in stage(each)]
    return [cell for cell in dict.fromkeys(cells) if cell.test]


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
