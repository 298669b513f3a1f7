"""`spectrakan tasks`: what can be learned."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from spectrakan.config import as_mapping
from spectrakan.data.catalog import TASKS, Task, task


def tasks(
    name: Annotated[str, typer.Argument(help="Show one task and its parameters.", show_default=False)] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """List the tasks: what is mapped to what, on which grid, with how many frames.

    \b
    spectrakan tasks                   all tasks in a table
    spectrakan tasks shallow_water2d   one task with the parameters that `generate` takes
    spectrakan tasks --json            the same for other programs
    """
    chosen = [task(name)] if name else list(TASKS.values())
    if as_json:
        print(json.dumps([_describe(entry) for entry in chosen], indent=2))
    elif name:
        _print_one(chosen[0])
    else:
        _print_table(chosen)


def _describe(entry: Task) -> dict[str, Any]:
    parameters = {} if entry.equation is None else as_mapping(entry.equation.parameters())
    return {
        "name": entry.name,
        "summary": entry.summary,
        "input_fields": [spec.name for spec in entry.input_fields],
        "fields": [spec.name for spec in entry.fields],
        "resolution": list(entry.resolution),
        "frames": entry.frames,
        "history": entry.history,
        "horizon": entry.horizon,
        "split": as_mapping(entry.split),
        "made_by": "file" if entry.equation is None else "solver",
        "parameters": parameters,
    }


def _print_table(chosen: list[Task]) -> None:
    table = Table("task", "fields", "grid", "frames", "history", "horizon", box=None, pad_edge=False)
    for entry in chosen:
        grid = " x ".join(str(size) for size in entry.resolution)
        numbers = (entry.frames, entry.history, entry.horizon)
        table.add_row(entry.name, entry.mapping, grid, *(str(number) for number in numbers))
    # A pipe has no width: lines must not be wrapped there.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print("\n`spectrakan tasks NAME` shows the parameters of one, `spectrakan generate NAME` makes samples.")


def _print_one(entry: Task) -> None:
    print(f"{entry.name}: {entry.summary}")
    print(f"fields    {entry.mapping}")
    print(f"grid      {' x '.join(str(size) for size in entry.resolution)}")
    print(f"frames    {entry.frames}, of which {entry.history} are seen and {entry.horizon} predicted")
    split = ", ".join(f"{part} {getattr(entry.split, part):g}" for part in ("train", "validation", "test"))
    order = f"in time order with a gap of {entry.split.gap}" if entry.split.time_ordered else "at random"
    print(f"split     {split}, {order}")
    if entry.equation is None:
        print("made by   reading a file; a small one comes with the package")
        return
    print("made by   its solver, with these parameters:")
    defaults = entry.equation.parameters()
    for setting in fields(entry.equation.parameters):
        description = entry.equation.parameters.__pydantic_fields__[setting.name].description or ""
        print(f"  {setting.name} = {getattr(defaults, setting.name)}")
        print(f"      {' '.join(description.split())}")
