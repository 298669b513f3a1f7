"""`spectrakan tasks`: the problems that are known by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spectrakan.data.problems import Problem


def tasks(
    name: Annotated[str, typer.Argument(help="Show one problem and its parameters.", show_default=False)] = "",
) -> None:
    """List the problems that are known by name, or show one and its parameters.

    \b
    spectrakan tasks                   all in a table: the paper's six, and those of installed packages
    spectrakan tasks shallow_water2d   one, with the parameters that `generate` takes

    Data of your own need no name here: spectrakan train --data mine.h5
    """
    from spectrakan.data.problems import all_problems, problem_named

    if name:
        _print_one(problem_named(name))
        return
    from spectrakan.cli.terminal import print_table

    rows = [
        [entry.name, entry.mapping, _cells(entry), *map(str, (entry.frames, entry.history, entry.horizon))]
        for entry in all_problems().values()
    ]
    print_table(["problem", "fields", "grid", "frames", "history", "horizon"], rows)
    print("\n`spectrakan tasks NAME` shows the parameters of one, `spectrakan generate NAME` makes samples.")


def _cells(entry: Problem) -> str:
    return " x ".join(str(size) for size in entry.resolution)


def _print_one(entry: Problem) -> None:
    from spectrakan.config import as_mapping, describe

    print(f"{entry.name}: {entry.summary}")
    print(f"fields    {entry.mapping}")
    print(f"grid      {_cells(entry)}")
    print(f"frames    {entry.frames}, history {entry.history}, horizon {entry.horizon}")
    split = ", ".join(f"{part} {getattr(entry.split, part):g}" for part in ("train", "validation", "test"))
    print(f"split     {split}, by {entry.split.by}" + (f", gap {entry.split.gap}" if entry.split.gap else ""))
    if entry.equation is None:
        print("made by   reading a file; a small one comes with the package")
        return
    print("made by   its solver, with these parameters:")
    meanings = describe(entry.equation.parameters)
    for key, value in as_mapping(entry.equation.parameters()).items():
        print(f"  {key} = {value}")
        print(f"      {' '.join(meanings[key].split())}")
