"""`spectrakan check`: whether a file is fit to learn from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from spectrakan.cli.progress import progress_bar
from spectrakan.data.catalog import task as task_named
from spectrakan.data.check import Health, check_dataset
from spectrakan.data.climate import load_climate
from spectrakan.data.load import load_dataset
from spectrakan.data.split import Split
from spectrakan.errors import DataFormatError
from spectrakan.fields import Trajectories


def check(
    path: Annotated[Path, typer.Argument(help="Data file of any format that `load_dataset` reads.")],
    split: Annotated[
        Path | None, typer.Option(help="JSON file with the indices of a split, or a run's record with one.")
    ] = None,
    task: Annotated[
        str, typer.Option(help="Which task it is for, where the file does not say.", show_default=False)
    ] = "",
    mapping: Annotated[
        Path | None, typer.Option(help="YAML file that says what the arrays of a foreign file mean.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Read a data file and report its health.

    \b
    spectrakan check data.h5                     layout, ranges, bad numbers, copies, equation
    spectrakan check data.h5 --split split.json  leakage across that split
    spectrakan check 'ncep/*.nc' --task climate2d
    spectrakan check mine.npz --mapping mine.yaml
    spectrakan check data.h5 --json              for other programs

    NaN and infinities are reported with their place, copies of trajectories with their numbers, and for
    a known equation how well the frames solve it (0: exactly, 1: not at all): by differences, and by
    solving anew from stored frames. The exit code is 1 when there are problems, 2 when the file cannot
    be read.
    """
    recorded = None if split is None else _read_split(split)
    trajectories = _load(path, task, mapping)
    with progress_bar(f"checking {path.name}") as progress:
        health = check_dataset(trajectories, recorded, progress)
    if as_json:
        print(json.dumps(health.to_json(), indent=2))
    else:
        _print(path, health)
    if health.problems:
        raise typer.Exit(1)


def _load(path: Path, name: str, mapping: Path | None) -> Trajectories:
    if name and task_named(name).equation is None:
        return load_climate(path)
    found = load_dataset(path, mapping=mapping)
    return replace(found, task=name or found.task)


def _read_split(path: Path) -> Split:
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise DataFormatError(f"cannot read a split from '{path}': {problem}") from None
    inner = document.get("split", document) if isinstance(document, dict) else document
    if not isinstance(inner, dict):
        raise DataFormatError(f"'{path}' must hold lists of indices by part, got {type(inner).__name__}")
    return Split.from_json(inner)


def _print(path: Path, health: Health) -> None:
    print(path)
    for line in (*_layout(health.layout), *_ranges(health), *_copies(health), _equation(health)):
        print(f"  {line}")
    for problem in health.problems:
        print(f"PROBLEM  {problem}")
    for warning in health.warnings:
        print(f"warning  {warning}")
    if not health.problems:
        print("fit to learn from" if not health.warnings else "usable; see the warnings")


def _layout(layout: dict[str, Any]) -> list[str]:
    space = " x ".join(str(size) for size in layout["space"])
    domain = " x ".join(f"({low:g}, {high:g})" for low, high in layout["bounds"])
    first, last = layout["times"]
    pace = "equal steps" if layout["equal_steps"] else "unequal steps"
    frames = "steady" if layout["steady"] else f"{layout['frames']} frames, t = {first:g} to {last:g}, {pace}"
    store = "in memory" if layout["in_memory"] else "read piece by piece"
    lines = [
        f"task      {layout['task'] or 'unknown'}",
        f"samples   {layout['samples']}, {frames}",
        f"grid      {space} on {domain}, boundary {', '.join(layout['boundary']) or 'unknown'}",
        f"stored    {layout['dtype']}, {layout['gigabytes']:.3g} GB, {store}",
    ]
    if layout["params"]:
        lines.append(f"params    {', '.join(layout['params'])}")
    if layout["constants"]:
        lines.append(f"constants {', '.join(f'{name} {value:g}' for name, value in layout['constants'].items())}")
    return lines


def _ranges(health: Health) -> list[str]:
    lines = []
    for entry in health.ranges:
        unit = f" {entry.field.unit}" if entry.field.unit else ""
        span = "no finite number"
        if entry.minimum is not None:
            span = f"{entry.minimum:.6g} to {entry.maximum:.6g}, mean {entry.mean:.6g}{unit}"
        bad = f", {entry.bad_count} bad" if entry.bad_count else ""
        lines.append(f"{entry.array:9} {entry.field.name}: {span}{bad}")
    return lines + [f"bad       {place}" for place in health.bad_places]


def _copies(health: Health) -> list[str]:
    total = health.layout["samples"]
    lines = [f"distinct  {health.distinct} of {total} trajectories"]
    if health.copies:
        largest = max(health.copies, key=len)
        shown = ", ".join(str(index) for index in largest[:8])
        lines.append(f"copies    {len(health.copies)} groups; the largest has {len(largest)}: {shown} ...")
    leakage = health.leakage
    copied = f"{len(leakage.copied)} of {leakage.tested}"
    return [*lines, f"leakage   {copied} test samples have a copy in training ({leakage.split})"]


def _equation(health: Health) -> str:
    found = health.equation
    if not found.samples:
        return f"equation  not checked: {found.note}"
    parts = []
    if found.residual is not None:
        parts.append(f"relative residual {found.residual:.2g}")
    if found.unexplained is not None:
        kind = "solution" if health.layout["steady"] else "change between frames"
        parts.append(f"the solver misses {found.unexplained:.2g} of the {kind}")
    note = f" ({found.note})" if found.note else ""
    return f"equation  {', '.join(parts) or 'nothing changes'}{note}"
