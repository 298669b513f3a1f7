"""`spectrakan models`: what there is to train, how large it is, what it costs, and which grids it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
import typer

from spectrakan.evaluation.recorded_costs import RECORDED_COSTS, RECORDED_TASKS
from spectrakan.evaluation.step_cost import step_seconds
from spectrakan.fields import OperatorSignature
from spectrakan.models import MODELS, VARIANTS, Operator, build_model
from spectrakan.models.abilities import ABILITIES

REFERENCE = "fno"
"""The model whose step is the unit of cost."""
TASKS: dict[str, tuple[OperatorSignature, tuple[int, ...]]] = {
    "cns1d": (
        OperatorSignature(space_dims=1, history=10, in_channels=3, out_channels=3, boundary=("periodic",)),
        (128,),
    ),
    "diffusion_reaction1d": (
        OperatorSignature(space_dims=1, history=5, in_channels=1, out_channels=1, boundary=("periodic",)),
        (256,),
    ),
    "darcy2d": (
        OperatorSignature(
            space_dims=2, history=1, in_channels=1, out_channels=1, boundary=("dirichlet", "dirichlet"), steady=True
        ),
        (64, 64),
    ),
    "shallow_water2d": (
        OperatorSignature(space_dims=2, history=10, in_channels=3, out_channels=3, boundary=("outflow", "outflow")),
        (64, 64),
    ),
    "droplet2d": (
        OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=3, boundary=("wall", "wall")),
        (32, 32),
    ),
    "climate2d": (
        OperatorSignature(
            space_dims=2, history=1, in_channels=1, out_channels=1, boundary=("wall", "periodic"), steady=True
        ),
        (32, 64),
    ),
}
"""What each task asks of a model, and its grid."""


def models(
    variant: Annotated[str, typer.Option(help="Sizes to list: a variant of each model that has it.")] = "default",
    measure: Annotated[bool, typer.Option("--measure", help="Time a training step of each here, a minute.")] = False,
) -> None:
    """List all models: parameters at each task's size, dimensions, resolutions, and cost against FNO."""
    rows = [["model", *TASKS, "dimensions", "on other grids", "reads"]]
    for name in MODELS:
        facts = ABILITIES[name]
        counts = [f"{count_parameters(_built(name, signature, variant)):,}" for signature, _ in TASKS.values()]
        dims = ", ".join(f"{count}D" for count in facts.space_dims)
        rows.append([name, *counts, dims, facts.refinement, facts.reads])
    print("Parameters at each task's size:")
    print(aligned(rows))
    if measure:
        print(f"\nCPU time of a training step over that of {REFERENCE}:")
        print(aligned(measured_rows(list(MODELS), variant)))
    elif variant == "default":
        print(f"\nCPU time of a training step over that of {REFERENCE}, as recorded (--measure: on this machine):")
        print(aligned(recorded_rows()))
    else:
        print("\nCosts are recorded for the default sizes; add --measure to time these.")


def measured_rows(names: Sequence[str], variant: str, *, reference: str = REFERENCE) -> list[list[str]]:
    """One row a model: the cost of a step at each task's size over the reference's."""
    rows = [["model", *TASKS]]
    seconds = {
        name: [step_seconds(_built(name, signature, variant), space) for signature, space in TASKS.values()]
        for name in dict.fromkeys([reference, *names])
    }
    for name in names:
        ratios = [own / unit for own, unit in zip(seconds[name], seconds[reference], strict=True)]
        rows.append([name, *(f"{ratio:.2f}" for ratio in ratios)])
    return rows


def recorded_rows() -> list[list[str]]:
    """The same as it was measured at default sizes."""
    return [["model", *RECORDED_TASKS], *([name, *(f"{cost:g}" for cost in RECORDED_COSTS[name])] for name in MODELS)]


def count_parameters(model: Operator) -> int:
    """Real numbers that training changes."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side; those of numbers stand to the right."""
    columns = list(zip(*rows, strict=True))
    padded = []
    for column in columns:
        width = max(len(cell) for cell in column)
        numbers = all(cell.replace(",", "").replace(".", "").isdigit() for cell in column[1:])
        padded.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in column])
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*padded, strict=True))


def _built(name: str, signature: OperatorSignature, variant: str) -> Operator:
    known = VARIANTS.get(name, {})
    # Starting weights are drawn from a generator of their own: listing models changes no one's random numbers.
    with torch.random.fork_rng(devices=[]):
        return build_model(name, signature, variant=variant if variant in known else "default")
