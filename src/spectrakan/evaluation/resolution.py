"""One set of weights on grids other than that of training: zero-shot resolution, on data solved on each grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from spectrakan.data.regenerate import brought_to
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.evaluation.batches import DEFAULT, EvaluationSettings, Samples
from spectrakan.evaluation.evaluate import evaluate
from spectrakan.fields import Trajectories
from spectrakan.models.catalog import MODELS
from spectrakan.runs.record import as_json

RESOLUTIONS = (32, 64, 128)


def resolution_scores(
    model: nn.Module,
    trajectories: Trajectories,
    resolutions: Sequence[int] = RESOLUTIONS,
    *,
    horizon: int | None = None,
    samples: Samples = None,
    trained_at: int | None = None,
    force: bool = False,
    settings: EvaluationSettings = DEFAULT,
) -> dict[str, Any]:
    """Scores of one model on the same samples, solved anew on each of `resolutions` cells along the longest axis.

    The samples must be generated ones (see `regenerate`); on the grid of `trajectories` they are used as they
    are. `trained_at` is the resolution of training, by default that of `trajectories`. A model whose weights are
    another operator on another grid is refused; with `force` it runs, and its record says `runs only`. The result
    has one entry a resolution under `resolutions`: what `evaluate` gives, and `ratio`, its relative L2 error over
    that at `trained_at`.
    """
    name, home = str(getattr(model, "name", type(model).__name__)), trained_at or max(trajectories.grid.shape)
    for cells in resolutions:
        require_capability(model, cells, home, force=force)
        if cells != max(trajectories.grid.shape) and not trajectories.origin:
            raise ConfigError(
                f"the samples cannot be solved at {cells}: they do not record how they were generated, and averages "
                "are not solutions; generate a set for each resolution with one seed and call evaluate on each"
            )
    entries = []
    for cells in resolutions:
        data, source = brought_to(trajectories, cells)
        try:
            found = evaluate(model, data, horizon=horizon, samples=samples, settings=settings)
        except ShapeError as problem:
            shape = " x ".join(str(size) for size in data.grid.shape)
            raise ShapeError(f"{name} does not take {shape} cells: {problem}") from problem
        entries.append(found | {"data": source})
    at_home = next((entry["metrics"]["relative_l2"] for entry in entries if max(entry["resolution"]) == home), None)
    for entry in entries:
        entry["ratio"] = entry["metrics"]["relative_l2"] / at_home if at_home else None
    refinement = MODELS[name].refinement if name in MODELS else "unknown"
    result = {"task": trajectories.name, "model": name, "trained_at": home, "refinement": refinement}
    return as_json(result | {"resolutions": entries})


def require_capability(model: nn.Module, resolution: int, trained_at: int, *, force: bool = False) -> None:
    """Refuse a grid on which this model's weights would be another operator."""
    name = str(getattr(model, "name", type(model).__name__))
    known = MODELS.get(name)
    if resolution == trained_at or force or known is None or known.order is not None:
        return
    raise ConfigError(
        f"{name} cannot be scored zero-shot at {resolution}: it reads {known.reads}, so its weights "
        f"learned at {trained_at} cells are another operator there; train it at {resolution}, choose a model that "
        "`spectrakan models` lists as the same operator on other grids, or run it all the same with force=True "
        "(`--force`)"
    )
