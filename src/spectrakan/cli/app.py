"""The table of commands, and how their failures are told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer
from rich.console import Console

from spectrakan.cli.bench import bench
from spectrakan.cli.certify import certify
from spectrakan.cli.check import check
from spectrakan.cli.compare import compare
from spectrakan.cli.demo import demo
from spectrakan.cli.download import download
from spectrakan.cli.evaluate import evaluate
from spectrakan.cli.generate import generate
from spectrakan.cli.models import models
from spectrakan.cli.predict import predict
from spectrakan.cli.report import report
from spectrakan.cli.reproduce import reproduce
from spectrakan.cli.tasks import tasks
from spectrakan.cli.train import train
from spectrakan.errors import RunError, SpectraKANError
from spectrakan.training.stop import Stopped

COMMANDS: dict[str, Callable[..., Any]] = {
    "tasks": tasks,
    "models": models,
    "generate": generate,
    "download": download,
    "check": check,
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
    "compare": compare,
    "reproduce": reproduce,
    "report": report,
    "certify": certify,
    "bench": bench,
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
    """Run the command line; failures end in one line and an exit code, never in a traceback.

    2: the user's mistake. 1: the run failed (folder in use, disk or memory full, diverged).
    130 and 143: stopped by Ctrl-C and SIGTERM, after a checkpoint.
    """
    try:
        build_app()()
    except RunError as problem:
        _tell(f"error: {problem}")
        sys.exit(1)
    except SpectraKANError as problem:
        _tell(f"error: {problem}")
        sys.exit(2)
    except Stopped as stop:
        _tell(str(stop))
        sys.exit(stop.code)
    except OSError as problem:
        _tell(f"error: {problem}")
        sys.exit(1)


def _tell(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)
