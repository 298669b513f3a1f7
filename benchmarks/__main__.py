"""`make bench`: measure, keep the record, write the tables."""

from __future__ import annotations

import argparse
import json
import platform
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks import compiled, ffno, kan, limit, loop, operators, rates

HERE = Path(__file__).parent


def machine() -> dict[str, str]:
    """What the numbers were taken on."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return {
        "processor": names[0] if names else platform.processor(),
        "vector instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
        "python": platform.python_version(),
        **{package: version(package) for package in ("torch", "neuraloperator", "pykan")},
    }


PARTS: dict[str, Callable[[int], Any]] = {
    "operators": operators.step_and_inference,
    "two_threads": operators.with_two_threads,
    "kept_memory": operators.with_kept_memory,
    "growth": operators.growth,
    "memory": lambda _: operators.peak_memory(),
    "unrolled": lambda _: operators.unrolled_memory(),
    "limit": limit.shares,
    "compiled": compiled.against_eager,
    "kan": kan.against_pykan,
    "ffno": ffno.against_plain,
    "generation": lambda _: rates.generation(),
    "loop": lambda _: loop.overhead(),
}
"""What is measured, by its name in the record."""


def measure(rounds: int, only: Sequence[str] = ()) -> dict[str, Any]:
    """All measurements, or some anew beside the others of the record."""
    kept = json.loads((HERE / "record.json").read_text()) if only else {}
    return {**kept, "machine": machine(), **{name: PARTS[name](rounds) for name in only or PARTS}}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def ratio_table(rows: list[dict[str, Any]], value: str, unit: float, digits: int) -> str:
    """Models down, sizes across: value and its ratio to FNO(12, 12)."""
    sizes = sorted({row["cells"] for row in rows})
    found = {(row["model"], row["cells"]): row[value] for row in rows}
    lines = []
    for name in dict.fromkeys(row["model"] for row in rows):
        cells = [
            f"{found[name, size] * unit:.{digits}f} ({found[name, size] / found['FNO(12, 12)', size]:.2f})"
            for size in sizes
        ]
        lines.append([name, *cells])
    return table(["model", *[f"{size}²" for size in sizes]], lines)


def by_kind(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of training steps and those of inference."""
    kinds = "training step", "batch-1 inference"
    steps, answers = ([row for row in rows if row["kind"] == kind] for kind in kinds)
    return steps, answers


def otherwise(title: str, rows: list[dict[str, Any]]) -> list[str]:
    """The tables of steps and inference under other conditions, where they were measured."""
    if not rows:
        return []
    steps, answers = (ratio_table(part, "seconds", 1000, 1) for part in by_kind(rows))
    return [f"## {title}", "Training step:", steps, "Inference:", answers]


def unrolled(rows: list[dict[str, Any]]) -> list[str]:
    """The table of an unrolled step's memory, where it was measured."""
    if not rows:
        return []
    head = f"### {operators.UNROLLED_FRAMES} unrolled frames, one sample, all activations kept"
    return [head, ratio_table(rows, "megabytes", 1, 0)]


def compiled_step(found: dict[str, float]) -> list[str]:
    """What torch.compile does to the default model's step, where it was measured."""
    if not found:
        return []
    ratio, first = found["compiled"] / found["eager"], found["compiling"]
    said = (
        f"{found['breaks']:.0f} graph breaks; time over that of the eager step {ratio:.2f}; first step {first:.0f} s."
    )
    title = f"## torch.compile of the default's training step, {compiled.CELLS}², batch {compiled.BATCH}, whole graph"
    return [title, said]


def limits(found: dict[str, Any]) -> list[str]:
    """The table of what a step's parts need at best, where it was measured."""
    if not found:
        return []
    said = (
        f"Least times, in milliseconds. A large matrix product reaches {found['rate']:.0f} gigaflops a second; the "
        "products of a step at that rate and its nonlinearities in the cache are the least that this model needs."
    )
    lines = []
    for row in found["rows"]:
        least = row["products"] + row["nonlinearities"]
        parts = (row["products"], row["nonlinearities"], row["seconds"])
        timed = [f"{1000 * each:.0f}" for each in parts]
        lines.append([f"{row['cells']}²", f"{row['gigaflops']:.1f}", *timed, f"{least / row['seconds']:.0%}"])
    head = ["size", "gigaflops", "products", "nonlinearities", "step", "least / step"]
    return ["## Where a training step of the default goes", said, table(head, lines)]


INTRODUCTION = """\
Made by `make bench`, every table from one interleaved run; the numbers are in `benchmarks/record.json`. Medians of
CPU time on one thread; in parentheses the ratio to neuraloperator's FNO(12, 12) of the same width and depth: below 1
is faster or smaller. FNO(24, 24) reaches the highest frequency of our 12 modes, for neuraloperator counts both
signs."""


def write(record: dict[str, Any]) -> str:
    """The tables of benchmarks/RESULTS.md."""
    steps, answers = by_kind(record["operators"])
    factorized = record["ffno"]
    growth = [[name, f"{value:.3f}"] for name, value in record["growth"].items()]
    splines = [
        [
            str(row["batch"]),
            f"{1000 * row['ours']:.1f}",
            f"{1000 * row['pykan']:.1f}",
            f"{row['pykan'] / row['ours']:.1f}",
        ]
        for row in record["kan"]
    ]
    samples = [
        [row["task"], f"{row['seconds']:.0f}", f"{row['cpu_seconds']:.0f}", str(row["limit"])]
        for row in record["generation"]
    ]
    parts = [
        "# Benchmarks",
        INTRODUCTION,
        table(["machine", ""], [[key, value] for key, value in record["machine"].items()]),
        "## Training step (forward, backward, AdamW), milliseconds",
        "65,536 cells a step: batch 16 at 64², 4 at 128², 1 at 256².",
        ratio_table(steps, "seconds", 1000, 0),
        "## Inference, one sample, milliseconds",
        ratio_table(answers, "seconds", 1000, 1),
        *otherwise("The same with two threads, milliseconds on the clock", record.get("two_threads", [])),
        *otherwise(
            "The same on one thread where the C library keeps freed memory, as training asks of it, milliseconds",
            record.get("kept_memory", []),
        ),
        *limits(record.get("limit", {})),
        "## Peak memory of a training step, megabytes beyond model and input",
        ratio_table(record["memory"], "megabytes", 1, 0),
        *unrolled(record.get("unrolled", [])),
        *compiled_step(record.get("compiled", {})),
        "## Growth of a step from 64² to 256², batch 4: exponent in the number of cells",
        table(["model", "exponent"], growth),
        f"## KAN {kan.WIDTHS}, order 3, 5 intervals: forward and backward, milliseconds",
        "Ours with learnable knots, pykan without its symbolic part.",
        table(["batch", "ours", "pykan", "pykan / ours"], splines),
        "## F-FNO, four layers of its paper's size, 64², batch 4: training step, milliseconds",
        table(
            ["ours", "its authors' form in plain torch", "ours / plain"],
            [
                [
                    f"{1000 * factorized['ours']:.0f}",
                    f"{1000 * factorized['plain']:.0f}",
                    f"{factorized['ours'] / factorized['plain']:.2f}",
                ]
            ],
        ),
        f"## Making {rates.SAMPLES:,} samples with a task's defaults, two threads, seconds",
        table(["task", "on the clock", "of CPU", "bar on two free cores"], samples),
        "## Training loop on the demo's size: share of a step that is not forward, backward or optimizer",
        table(["model", "step, milliseconds", "share beside computing", "limit"], loop.rows(record["loop"])),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure and write both files."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=11, help="times that each case is run, in turns")
    parser.add_argument(
        "--only", nargs="+", default=[], choices=PARTS, help="parts to measure anew; the rest is kept"
    )
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    record = measure(asked.rounds, asked.only)
    (HERE / "record.json").write_text(json.dumps(record, indent=1) + "\n")
    text = write(record)
    (HERE / "RESULTS.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
