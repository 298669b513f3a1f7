"""One set of weights on grids it was not trained on: zero-shot resolution, on data solved on each grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectrakan.data.progress import Progress
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.evaluation.evaluate import brought_to, evaluate
from spectrakan.evaluation.plain import as_json
from spectrakan.evaluation.share import ALONE, Share
from spectrakan.fields import Trajectories
from spectrakan.models.abilities import ABILITIES
from spectrakan.models.operator import Operator

RESOLUTIONS = (32, 64, 128)


def resolution_scores(
    model: Operator,
    trajectories: Trajectories,
    resolutions: Sequence[int] = RESOLUTIONS,
    *,
    horizon: int | None = None,
    samples: Sequence[int] | None = None,
    trained_at: int | None = None,
    any_model: bool = False,
    batch_size: int = 16,
    share: Share = ALONE,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Scores of one model on the same samples, solved anew on each of `resolutions` cells along the longest axis.

    The samples must be generated ones (`regenerate` says why); those on the grid of `trajectories` are used as they
    are. `trained_at` is the resolution of training, by default that of `trajectories`. A model whose weights mean
    something else on another grid is refused, unless `any_model` asks to run it all the same; its record then says
    `runs only`. `share` is as in `evaluate`. The answer has one entry a resolution under `resolutions`: what
    `evaluate` gives, and `ratio`, its relative L2 error over that at `trained_at`.
    """
    own = max(trajectories.grid.shape)
    home = trained_at or own
    for wanted in resolutions:
        require_ability(model, wanted, home, any_model=any_model)
    entries = []
    for wanted in resolutions:
        data, source = _solved(trajectories, wanted)
        try:
            found = evaluate(
                model, data, horizon=horizon, samples=samples, batch_size=batch_size, share=share, progress=progress
            )
        except ShapeError as problem:
            cells = " x ".join(str(size) for size in data.grid.shape)
            raise ShapeError(f"{model.name} does not take {cells} cells: {problem}") from problem
        entries.append(found | {"data": source})
    at_home = next((entry for entry in entries if max(entry["resolution"]) == home), None)
    for entry in entries:
        entry["ratio"] = _ratio(entry, at_home)
    return as_json(
        task=trajectories.task,
        model=model.name,
        trained_at=home,
        refinement=ABILITIES[model.name].refinement if model.name in ABILITIES else "unknown",
        resolutions=entries,
    )


def require_ability(model: Operator, resolution: int, trained_at: int, *, any_model: bool = False) -> None:
    """Refuse a grid on which this model's weights would be another operator; say why and what to do."""
    facts = ABILITIES.get(model.name)
    if resolution == trained_at or any_model or facts is None or facts.order is not None:
        return
    raise ConfigError(
        f"{model.name} cannot be scored zero-shot at {resolution}: it reads {facts.reads}, so the weights it learned "
        f"at {trained_at} cells are another operator there; train it at {resolution}, choose a model that "
        "`spectrakan models` lists as the same operator on other grids, or run it all the same with any_model=True "
        "(`--any-model`)"
    )


def _solved(trajectories: Trajectories, resolution: int) -> tuple[Trajectories, str]:
    data, source = brought_to(trajectories, resolution)
    if source == "averaged":
        raise ConfigError(
            f"the samples cannot be solved at {resolution}, for they do not say how they were generated, and "
            "averages are not solutions; generate a set for each resolution with one seed and call evaluate on each"
        )
    return data, source


def _ratio(entry: dict[str, Any], at_home: dict[str, Any] | None) -> float | None:
    error = 0.0 if at_home is None else at_home["metrics"]["relative_l2"]
    return entry["metrics"]["relative_l2"] / error if error else None
