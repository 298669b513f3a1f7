"""`spectrakan check`: whether a file is fit to learn from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spectrakan.errors import ConfigError, DataFormatError

if TYPE_CHECKING:
    from spectrakan.data.check import Health
    from spectrakan.data.split import Split
    from spectrakan.fields import Trajectories


def check(
    path: Annotated[
        Path | None,
        typer.Argument(help="Data file, or run folder; left out: the data of --problem.", show_default=False),
    ] = None,
    split: Annotated[
        Path | None, typer.Option(help="JSON file with the indices of a split, or a run's record.json.")
    ] = None,
    problem: Annotated[
        str, typer.Option("--problem", help="The problem's name, where the file does not say.", show_default=False)
    ] = "",
    mapping: Annotated[
        Path | None, typer.Option(help="YAML file that says what the arrays of a foreign file mean.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
    explain_mapping: Annotated[
        bool, typer.Option("--explain-mapping", help="Explain mapping files and exit.")
    ] = False,
) -> None:
    """Read a data file and report whether it is fit to learn from.

    \b
    spectrakan check data.h5                     layout, ranges, bad numbers, copies
    spectrakan check data.h5 --split RUN/record.json   leakage across that split
    spectrakan check --problem climate2d         the data that come with a problem
    spectrakan check mine.npz --mapping mine.yaml
    spectrakan check runs/mine-fno-0             the data of a run

    NaN and infinities are reported with their place, copies of trajectories with their numbers. The exit code is 1
    when there are problems, 2 when the file cannot be read.

    A mapping is a YAML file that names the arrays of a foreign file, their axes in stored order (sample, time, x, y,
    z, channel) and their fields; `spectrakan check --explain-mapping` prints one with comments.
    """
    from dataclasses import asdict

    from spectrakan.data.check import check_dataset
    from spectrakan.data.formats.mapping import MAPPING_HELP
    from spectrakan.training.display import progress_bar

    if explain_mapping:
        print(MAPPING_HELP, end="")
        return
    recorded = None if split is None else _read_split(split)
    trajectories = _load(path, problem, mapping)
    title = problem if path is None else path.name
    with progress_bar(f"checking {title}") as progress:
        health = check_dataset(trajectories, recorded, progress)
    if as_json:
        print(json.dumps(asdict(health), indent=2))
    else:
        print(path or problem)
        for name, text in (*health.facts.items(), *_contents(health)):
            print(f"  {name:12} {text}")
        for fault in health.problems:
            print(f"PROBLEM  {fault}")
        for warning in health.warnings:
            print(f"warning  {warning}")
        if not health.problems:
            print("fit to learn from" if not health.warnings else "usable; see the warnings")
    if health.problems:
        raise typer.Exit(1)


def _load(path: Path | None, name: str, mapping: Path | None) -> Trajectories:
    from dataclasses import replace

    from spectrakan.data.files import load_dataset
    from spectrakan.data.prepare import find
    from spectrakan.data.problems import problem_named
    from spectrakan.runs import RunFolder

    known = problem_named(name) if name else None
    if known is not None and known.load is not None:
        return known.load(path)
    if path is None:
        raise ConfigError("name a data file or a run folder, or --problem with one that comes with data (climate2d)")
    if path.is_dir() and (folder := RunFolder(path)).started:
        from spectrakan.training import resolve

        resolved = resolve(folder.read_config())
        return find(resolved.problem, resolved.config.data)
    found = load_dataset(path, mapping=mapping)
    return replace(found, name=name or found.name)


def _read_split(path: Path) -> Split:
    from spectrakan.config import build_settings
    from spectrakan.data.split import Split
    from spectrakan.storage import read_json

    document = read_json(path)
    if isinstance(document, dict) and isinstance(document.get("provenance"), dict):
        document = document["provenance"]
    inner = document.get("split", document) if isinstance(document, dict) else document
    if not isinstance(inner, dict):
        raise DataFormatError(f"'{path}' must hold lists of indices by part, got {type(inner).__name__}")
    return build_settings(Split, inner, where="split")


def _contents(health: Health) -> Iterator[tuple[str, str]]:
    """Ranges, bad numbers, copies and leakage."""
    for entry in health.ranges:
        unit = f" {entry.field.unit}" if entry.field.unit else ""
        span = "no finite number"
        if entry.minimum is not None:
            span = f"{entry.minimum:.6g} to {entry.maximum:.6g}, mean {entry.mean:.6g}{unit}"
        bad = f", {entry.bad_count} bad" if entry.bad_count else ""
        yield entry.array, f"{entry.field.name}: {span}{bad}"
    yield from (("bad", where) for where in health.bad_places)
    yield "distinct", f"{health.distinct} of {health.samples} trajectories"
    if health.copies:
        largest = max(health.copies, key=len)
        shown = ", ".join(str(index) for index in largest[:8])
        yield "copies", f"{len(health.copies)} groups; the largest has {len(largest)}: {shown} ..."
    if health.leaked is not None:
        yield "leakage", f"{len(health.leaked)} samples outside the training part have a copy in it"
