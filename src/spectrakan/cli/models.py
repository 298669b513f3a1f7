"""`spectrakan models`: what there is to train, how large it is, what it costs, and which grids it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spectrakan.fields import OperatorSignature
    from spectrakan.models import Operator

REFERENCE = "fno"
"""The model whose step is the unit of cost."""


def models(
    measure: Annotated[bool, typer.Option("--measure", help="Time a training step of each here, a minute.")] = False,
    pretrained: Annotated[bool, typer.Option("--pretrained", help="List the trained models of the package.")] = False,
) -> None:
    """List all models: size, dimensions, other resolutions, cost against FNO.

    Sizes are those of the presets, which `spectrakan train` uses.
    """
    from spectrakan.models.catalog import CAPABILITIES, MODELS

    if pretrained:
        print(aligned(pretrained_rows()))
        return
    sizes = reference_signatures()
    rows = [["model", *sizes, "dimensions", "on other grids", "reads"]]
    for name in MODELS:
        known = CAPABILITIES[name]
        counts = [f"{count_parameters(_built(name, signature)):,}" for signature, _ in sizes.values()]
        dims = ", ".join(f"{count}D" for count in known.space_dims)
        rows.append([name, *counts, dims, known.refinement, known.reads])
    print("Parameters at each task's size:")
    print(aligned(rows))
    if measure:
        print(f"\nCPU time of a training step over that of {REFERENCE}:")
        print(aligned(measured_rows(list(MODELS))))
    else:
        print("\n--measure times a training step of each on this machine.")


def pretrained_rows() -> list[list[str]]:
    """One row for each trained model of the package: `sk.from_pretrained(name)`."""
    from spectrakan.models.pretrained import PRETRAINED, shipped
    from spectrakan.storage import read_json

    rows = [["name", "task", "parameters", "megabytes", "error on fresh samples", "card"]]
    for name in shipped():
        facts, weights = read_json(PRETRAINED / f"{name}.json"), PRETRAINED / name / "weights.safetensors"
        cells = min(facts["scores"], key=int)
        scores = facts["scores"][cells]
        error = next(f"{key} {value:.2%}" for key, value in scores.items() if isinstance(value, float))
        size = f"{weights.stat().st_size / 1e6:.2f}"
        told = f"{error.replace('_', ' ')} ({scores['states']} states, {cells} cells)"
        rows.append([name, facts["task"], f"{facts['parameters']:,}", size, told, str(PRETRAINED / f"{name}.md")])
    return rows


def measured_rows(names: Sequence[str], *, reference: str = REFERENCE) -> list[list[str]]:
    """One row a model: the cost of a step at each task's size over the reference's."""
    from spectrakan.evaluation.cost import step_seconds

    sizes = reference_signatures()
    seconds = {
        name: [step_seconds(_built(name, signature), space) for signature, space in sizes.values()]
        for name in dict.fromkeys([reference, *names])
    }
    units = seconds[reference]
    rows = [[name, *(f"{own / unit:.2f}" for own, unit in zip(seconds[name], units, strict=True))] for name in names]
    return [["model", *sizes], *rows]


def reference_signatures() -> dict[str, tuple[OperatorSignature, tuple[int, ...]]]:
    """What each of the paper's tasks asks of a model, and its grid."""
    from spectrakan.data.problems import PROBLEMS
    from spectrakan.fields import OperatorSignature

    return {
        name: (
            OperatorSignature(
                space_dims=problem.space_dims,
                history=problem.history,
                in_channels=len(problem.input_fields or problem.fields),
                out_channels=len(problem.fields),
                boundary=problem.equation.boundary if problem.equation else ("wall", "periodic"),
                steady=problem.steady,
            ),
            problem.resolution,
        )
        for name, problem in PROBLEMS.items()
    }


def count_parameters(model: Operator) -> int:
    """Real numbers that training changes."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side; those of numbers stand to the right."""
    padded = []
    for column in zip(*rows, strict=True):
        width = max(len(cell) for cell in column)
        numbers = all(cell.replace(",", "").replace(".", "").isdigit() for cell in column[1:])
        padded.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in column])
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*padded, strict=True))


def _built(name: str, signature: OperatorSignature) -> Operator:
    import torch

    from spectrakan.models import build_model
    from spectrakan.training.presets import size_of

    # Starting weights are drawn from a generator of their own: listing models changes no one's random numbers.
    with torch.random.fork_rng(devices=[]):
        return build_model(name, signature, **size_of(name, signature.space_dims))
