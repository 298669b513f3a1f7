"""`spectrakan reproduce`: the tables of the paper, cell by cell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from spectrakan.errors import ConfigError, RunError
from spectrakan.experiments import main, search
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.campaign import Outcome, Stage, run_stages, sort_out
from spectrakan.experiments.catalog import stages_of
from spectrakan.experiments.cells import Cell
from spectrakan.experiments.development import measure_development
from spectrakan.experiments.document import results_page
from spectrakan.experiments.estimate import Estimator, span
from spectrakan.experiments.figures import PLANS, draw_figures
from spectrakan.experiments.scales import scale_named
from spectrakan.experiments.step_times import measure_steps
from spectrakan.storage import write_text_atomically

FIGURES, STEPS, DEVELOPMENT = "figures", "steps", "development"


def reproduce(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE ...] [KEY=VALUE ...]", help="Tables, `all`, and settings.", show_default=False
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke, small or paper.")] = "small",
    jobs: Annotated[int, typer.Option(min=0, help="Cells side by side; 0 runs them in this process.")] = 1,
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
    """Run the cells of the paper's tables that have no record yet; stop it and start it again as you like.

    \b
    spectrakan reproduce all --scale smoke                    everything, tiny, in seconds
    spectrakan reproduce main --scale small --jobs 2          the main table on two cores
    spectrakan reproduce development --model ffno             trained weights on samples that are no test
    spectrakan reproduce --validation-only --task droplet2d --label wide model.width=48
    """
    chosen = scale_named(scale)
    archive = Archive(results, cache or results / ".cache", scale)
    wanted = [word for word in words or [] if "=" not in word] or ["all"]
    tables = [word for word in wanted if word not in (FIGURES, STEPS, DEVELOPMENT)]
    changes = [word for word in words or [] if "=" in word]
    if validation_only:
        stages = [search.stage(case or main.main_cases(chosen), _named(model), seed or [0], changes, label)]
    elif changes or (label and DEVELOPMENT not in wanted):
        raise ConfigError("settings and --label change a trial: give them with --validation-only")
    else:
        stages = [_only(stage, case, model, seed) for stage in stages_of(tables, chosen)]
    if dry_run:
        _list(stages, archive)
        return
    outcome = run_stages(stages, archive, jobs=jobs, refresh=refresh, train_only=train_only, tell=_tell)
    print(f"{scale}: {outcome}")
    models = [name.partition("/")[0] for name in model or []]
    if not validation_only and {STEPS, "all"} & set(wanted):
        measure_steps(archive, models=models, tell=_tell)
    if not validation_only and {FIGURES, "all"} & set(wanted):
        chosen_cases = None if not case else [name for name in PLANS if name in case]
        draw_figures(archive, cases=chosen_cases, formats=figure_format or (), tell=_tell)
    if not validation_only and DEVELOPMENT in wanted:
        measure_development(archive, cases=case or (), models=models, label=label, tell=_tell)
    if docs is not None:
        write_text_atomically(docs, results_page(archive))
        print(f"{docs}: tables from the records in {archive.folder}")
    if outcome.failed:
        raise RunError(f"{len(outcome.failed)} cells failed: {', '.join(outcome.failed)}")


def _named(models: list[str] | None) -> list[tuple[str, str]]:
    """`spectrakan/paper` as model and variant."""
    parts = [name.partition("/") for name in models or ["spectrakan"]]
    return [(model, variant or "default") for model, _, variant in parts]


def _only(stage: Stage, cases: list[str] | None, models: list[str] | None, seeds: list[int] | None) -> Stage:
    """A stage with the cells that were asked for; trials of learning rates go by model alone."""
    wanted = {name if "/" in name else f"{name}/" for name in models or []}

    def kept(cell: Cell) -> bool:
        fits = not wanted or f"{cell.model}/{cell.variant}" in wanted or f"{cell.model}/" in wanted
        if not cell.test:
            return fits
        return fits and (not cases or cell.case in cases) and (not seeds or cell.seed in seeds)

    return lambda archive: [cell for cell in stage(archive) if kept(cell)]


def _list(stages: list[Stage], archive: Archive) -> None:
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
    print(f"{len(costs)} cells missing, {outcome}; about {total} on one core of this machine, from measured steps")
    print("Cells that follow from records still missing, such as seeds of the strongest baselines, are not counted.")


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
