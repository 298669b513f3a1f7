"""The table of commands, and how their failures are told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console

from spectrakan.cli.check import check
from spectrakan.cli.demo import demo
from spectrakan.cli.download import download
from spectrakan.cli.generate import generate
from spectrakan.cli.models import models
from spectrakan.cli.tasks import tasks
from spectrakan.errors import SpectraKANError

COMMANDS: dict[str, Callable[..., Any]] = {
    "tasks": tasks,
    "models": models,
    "generate": generate,
    "download": download,
    "check": check,
    "demo": demo,
}
"""Every command by name; its function's signature is its arguments, its docstring its help."""


def build_app() -> typer.Typer:
    """The command-line application with all commands of the table."""
    app = typer.Typer(
        name="spectrakan",
        help="Learn solution operators of PDEs.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_program)
    for name, command in COMMANDS.items():
        app.command(name)(command)
    return app


def _program() -> None:
    """Learn solution operators of PDEs."""


def main() -> None:
    """Run the command line; a mistake, a full disk or a closed folder is one line and exit code 2, no traceback."""
    try:
        build_app()()
    except (SpectraKANError, OSError) as problem:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"error: {problem}", markup=False)
        sys.exit(2)
