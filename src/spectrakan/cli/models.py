"""`spectrakan models`: what there is to train, how large it is and which grids it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spectrakan.fields import OperatorSignature


def models(
    pretrained: Annotated[bool, typer.Option("--pretrained", help="List the trained models of the package.")] = False,
) -> None:
    """List all models: size, other resolutions.

    Sizes are those of the presets, which `spectrakan train` uses.
    """
    from spectrakan.cli.terminal import print_table
    from spectrakan.models.catalog import MODELS

    if pretrained:
        head, *trained = pretrained_rows()
        print_table(head, trained)
        return
    sizes = reference_signatures()
    rows = []
    for name, known in MODELS.items():
        counts = [f"{_parameters(name, signature):,}" for signature in sizes.values()]
        rows.append([name, *counts, known.refinement, known.reads])
    print("Parameters at each task's size:")
    print_table(["model", *sizes, "on other grids", "reads"], rows)


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


def reference_signatures() -> dict[str, OperatorSignature]:
    """What each of the paper's tasks asks of a model."""
    from spectrakan.data.problems import PROBLEMS
    from spectrakan.fields import OperatorSignature

    return {
        name: OperatorSignature(
            space_dims=problem.space_dims,
            history=problem.history,
            in_channels=len(problem.input_fields or problem.fields),
            out_channels=len(problem.fields),
            boundary=problem.equation.boundary if problem.equation else ("wall", "periodic"),
            steady=problem.steady,
        )
        for name, problem in PROBLEMS.items()
    }


def _parameters(name: str, signature: OperatorSignature) -> int:
    """Real numbers that training changes."""
    import torch

    from spectrakan.models import build_model
    from spectrakan.training.presets import size_of

    # Starting weights are drawn from a generator of their own: listing models changes no one's random numbers.
    with torch.random.fork_rng(devices=[]):
        model = build_model(name, signature, **size_of(name, signature.space_dims))
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
