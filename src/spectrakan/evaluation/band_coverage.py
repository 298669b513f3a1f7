"""Error bands of a trained operator, calibrated on a part of the split of its own and tried on the test part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from spectrakan.data.progress import Progress
from spectrakan.data.split import Split
from spectrakan.errors import ConfigError
from spectrakan.evaluation.bands import Bands, calibrate_bands, residual_scale
from spectrakan.evaluation.batches import predicted_batches
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.plain import as_json
from spectrakan.fields import Trajectories
from spectrakan.models.operator import Operator


def calibrated(
    model: Operator,
    trajectories: Trajectories,
    split: Split,
    horizon: int | None = None,
    *,
    coverage: float = 0.9,
    per: str = "trajectory",
    time_ordered: bool = False,
    batch_size: int = 16,
    progress: Progress | None = None,
) -> Bands:
    """Bands around rollouts from the `calibration` part, which must have served nothing else.

    Bands per trajectory are shaped by the usual errors on the `validation` part (on the training part where there is
    none), for a shape taken from the calibration part would break the promise.
    """
    part = split.part("calibration")
    if not part:
        raise ConfigError(
            "bands need trajectories that served nothing else, and this split has no calibration part; train with a "
            "share for it, such as data.split.train=0.6 data.split.calibration=0.2"
        )
    frames = scored_frames(trajectories, model.signature.history, horizon).horizon

    def predicted(samples: Sequence[int], told: Progress | None = None) -> tuple[Tensor, Tensor]:
        return all_predicted(model, trajectories, samples, frames, batch_size=batch_size, progress=told)

    usual = split.part("validation") or split.part("train")
    scale = residual_scale(*predicted(usual)) if per == "trajectory" else None
    return calibrate_bands(
        *predicted(part, progress), coverage=coverage, per=per, scale=scale, time_ordered=time_ordered
    )


def band_coverage(
    model: Operator,
    bands: Bands,
    trajectories: Trajectories,
    samples: Sequence[int],
    *,
    batch_size: int = 16,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """How often bands held on trajectories they have not seen, beside the promise; and how wide they are.

    `kept` says whether a promise was made and the share covered is within two standard errors of it. On another grid
    than that of calibration, or after a split by time, there is no promise: a `BandWarning` says so and `promised`
    is None. `half_width` is the mean over cells, by field and frame, in physical units.
    """
    frames = int(bands.half_width.shape[0])
    pred, truth = all_predicted(model, trajectories, samples, frames, batch_size=batch_size, progress=progress)
    found = bands.measure(pred, truth)
    widths = bands.half_width.flatten(1, -2).mean(1)
    return as_json(
        task=trajectories.task,
        model=model.name,
        resolution=trajectories.grid.shape,
        horizon=frames,
        per=bands.per,
        coverage=bands.coverage,
        **found.to_json(),
        kept=found.kept(),
        half_width={spec.name: widths[:, place] for place, spec in enumerate(trajectories.fields)},
    )


def all_predicted(
    model: Operator,
    trajectories: Trajectories,
    samples: Sequence[int],
    horizon: int,
    *,
    batch_size: int = 16,
    progress: Progress | None = None,
) -> tuple[Tensor, Tensor]:
    """Predicted and true frames of some samples `(samples, horizon, *space, channel)`, held together."""
    if not samples:
        raise ConfigError("no samples to predict; give this part of the split a larger share")
    batches = list(predicted_batches(model, trajectories, samples, horizon, batch_size=batch_size, progress=progress))
    return torch.cat([batch.frames for batch in batches]), torch.cat([batch.window.targets for batch in batches])
