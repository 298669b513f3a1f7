"""The table of commands, loaded one at a time, and how their failures are reported."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spectrakan.errors import ConfigError, RunError, SpectraKANError, nearest

COMMANDS: dict[str, str] = {
    "tasks": "List the problems that are known by name, or show one and its parameters.",
    "models": "List all models: size, other resolutions.",
    "generate": "Make samples of a problem with its solver and write them to a file.",
    "download": "Download a PDEBench file.",
    "check": "Read a data file and report whether it is fit to learn from.",
    "train": "Train a model on a problem, or on data of your own.",
    "evaluate": "Score the best weights of a run.",
    "predict": "Predict from the first frames of every sample of a file.",
    "compare": "Put the scores of runs and evaluations side by side.",
    "report": "Write one page about any runs: scores, curves, settings.",
    "certify": "Bound how far a trained model can change under a perturbation.",
    "export": "Write a trained model as one file that runs without spectrakan.",
    "serve": "Open a page where a trained operator runs beside its solver.",
    "demo": "Train SpectraKAN and FNO on falling droplets and write a page.",
}
"""Every command with its help in one line; its function lies in the module of its name.

A module is imported when its command is used: the help of all commands takes a fraction of a second.
"""

PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


class LazyCommands(TyperGroup):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command of that name."""
        if cmd_name not in COMMANDS:
            raise ConfigError(f"unknown command '{cmd_name}'{nearest(cmd_name, COMMANDS)}")
        return command_named(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands from the table, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def command_named(name: str) -> Any:
    """The command of that name, imported."""
    function: Callable[..., Any] = getattr(import_module(f"spectrakan.cli.{name}"), name)
    single = typer.Typer(**PLAIN)
    single.command(name)(function)
    found = typer.main.get_command(single)
    found.name = name
    return found


def build_app() -> typer.Typer:
    """The command-line application."""
    app = typer.Typer(name="spectrakan", cls=LazyCommands, no_args_is_help=True, **PLAIN)
    app.callback(invoke_without_command=True)(_program)
    return app


def _show_version(asked: bool | None) -> bool | None:
    if asked:
        try:
            print(f"spectrakan {version('spectrakan')}")
        except PackageNotFoundError:
            print("spectrakan (not installed)")
        raise typer.Exit
    return asked


def _program(
    # A callback of the option itself: without a command the function below is never called.
    show_version: Annotated[
        bool | None,
        typer.Option("--version", help="Show the version and stop.", is_eager=True, callback=_show_version),
    ] = None,
) -> None:
    """Learn solution operators of PDEs."""


def main() -> None:
    """Run the command line; failures end in one line and an exit code, never in a traceback.

    2: the user's mistake. 1: the run failed (folder in use, disk or memory full, diverged).
    130 and 143: stopped by Ctrl-C and SIGTERM, after a checkpoint.
    """
    guarded(build_app())


def run_command(command: Callable[..., Any]) -> None:
    """Run one function as a program of its own, its failures reported in the same way."""
    app = typer.Typer(**PLAIN)
    app.command()(command)
    guarded(app)


def guarded(app: typer.Typer) -> None:
    """Run an application; every expected failure becomes one line on stderr and an exit code."""
    try:
        app()
    except BaseException as problem:
        code = getattr(problem, "code", None)
        # torch reports a lack of memory as a RuntimeError.
        if isinstance(problem, MemoryError) or (isinstance(problem, RuntimeError) and "allocate" in str(problem)):
            text, code = "error: not enough memory; use fewer samples, a smaller batch or a coarser grid", 1
        elif isinstance(problem, SpectraKANError | OSError):
            text, code = f"error: {problem}", 1 if isinstance(problem, RunError | OSError) else 2
        elif type(problem).__name__ == "Stopped" and isinstance(code, int):
            text = str(problem)
        else:  # a fault of ours is shown whole
            raise
        print(text.replace("\n", " ") if len(text) < 2000 else text, file=sys.stderr)
        sys.exit(code)
