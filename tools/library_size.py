"""How large the library is, in the numbers that decide how quickly a newcomer understands it.

    python tools/library_size.py [CHECKOUT]      default: this checkout

Prints lines and files of the library and of the campaign, settings of SpectraKAN and of the stages, functions with
more than eight arguments, the time of `spectrakan --help`, and how many of the library's files one call of a model
and one training step run through.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MOST_ARGUMENTS = 8
EXEMPT = {"from_arrays"}
"""Functions that may take more; so may commands, which have one for each flag."""

PROBE = """
import sys, json, os
import torch, numpy as np
root = os.path.join(os.environ["LIBRARY"], "src", "spectrakan")
touched = set()
def trace(frame, event, argument):
    name = frame.f_code.co_filename
    if name.startswith(root):
        touched.add(name)
    return None
from spectrakan.fields import OperatorSignature
from spectrakan.models import build_model
signature = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, boundary=("wall", "wall"))
model = build_model("spectrakan", signature)
x = torch.rand(2, 1, 16, 16, 1)
model(x)
sys.settrace(trace); model(x); sys.settrace(None)
call = len(touched)
touched.clear()
from spectrakan.training import StepTaken, train
def listener(event):
    if isinstance(event, StepTaken) and event.step == 2:
        sys.settrace(trace)
    if isinstance(event, StepTaken) and event.step == 3:
        sys.settrace(None)
changes = ["data.num_samples=16", "data.resolution=8", "training.batch_size=2", "training.epochs=1"]
train("darcy2d", "spectrakan", changes, listeners=[listener])
print(json.dumps([call, len(touched)]))
"""


def lines_and_files(folder: Path) -> tuple[int, int]:
    """Lines and number of Python files below a folder."""
    files = sorted(folder.rglob("*.py"))
    return sum(len(file.read_text().splitlines()) for file in files), len(files)


def long_signatures(folder: Path) -> Iterator[str]:
    """Functions with too many arguments, commands aside."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.FunctionDef) or node.name in EXEMPT:
                continue
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]
            is_command = "cli" in file.parts and node.name == file.stem
            if len(names) > MOST_ARGUMENTS and not is_command:
                yield f"{file.relative_to(folder)}:{node.lineno} {node.name} ({len(names)})"


def settings_of(checkout: Path) -> str:
    """How many settings SpectraKAN and the stages have."""
    program = (
        "from spectrakan.models.spectrakan import SpectraKANConfig as C\n"
        "print(len(C.__pydantic_fields__), end=' of the network')\n"
        "try:\n    from spectrakan.models.stages import Stages as S\n"
        "    print(',', len(S.__pydantic_fields__), 'of the stages')\n"
        "except ImportError:\n    print()\n"
    )
    return _run(checkout, ["-c", program]).strip()


def help_seconds(checkout: Path, *words: str) -> float:
    """Median time of a help text over five starts."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        _run(checkout, ["-m", "spectrakan", *words, "--help"])
        times.append(time.perf_counter() - begin)
    return sorted(times)[2]


def _run(checkout: Path, words: list[str]) -> str:
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "LIBRARY": str(checkout)}
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=True, cwd=checkout
    )
    return done.stdout


def main() -> None:
    """Print all numbers."""
    checkout = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    library = checkout / "src" / "spectrakan"
    lines, files = lines_and_files(library)
    print(f"library        {lines:,} lines in {files} files")
    if (checkout / "experiments").is_dir():
        lines, files = lines_and_files(checkout / "experiments")
        print(f"experiments    {lines:,} lines in {files} files")
    print(f"settings       {settings_of(checkout)}")
    found = list(long_signatures(library))
    print(f"more than {MOST_ARGUMENTS} arguments: {', '.join(found) or 'none'}")
    print(f"--help         {help_seconds(checkout):.2f} s; train --help {help_seconds(checkout, 'train'):.2f} s")
    call, step = json.loads(_run(checkout, ["-W", "ignore", "-c", PROBE]).splitlines()[-1])
    print(f"files touched  {call} by model(x), {step} by a training step")


if __name__ == "__main__":
    main()
