"""What a rollout does as time goes on: errors frame by frame, how long it stays good, its spectra, its totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectrakan.data.progress import Progress
from spectrakan.evaluation.batches import predicted_batches
from spectrakan.evaluation.drift import DriftProfile
from spectrakan.evaluation.error_growth import ErrorGrowth
from spectrakan.evaluation.evaluate import scored_frames
from spectrakan.evaluation.plain import as_json
from spectrakan.evaluation.spectra import SpectrumProfile
from spectrakan.fields import Trajectories
from spectrakan.models.operator import Operator

THRESHOLDS = (0.05, 0.1, 0.2)
"""Relative L2 errors whose first passing is timed."""


def profile(
    model: Operator,
    trajectories: Trajectories,
    horizon: int | None = None,
    *,
    samples: Sequence[int] | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    spectrum_frames: Sequence[int] | None = None,
    batch_size: int = 16,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """One rollout of each sample, looked at frame by frame, as plain JSON values in physical units.

    `times`       of the predicted frames; `lead_times` count from the last given one
    `rmse`, `relative_l2`  for `all` fields and each by name, one number a frame
    `thresholds`  for each of `thresholds`, when the relative L2 error of each sample passed it (None: never)
    `spectra`     energy by shell of wavenumbers of truth, prediction and error at `spectrum_frames` (places among
                  the predicted frames; by default the first, the middle and the last)
    `drift`       change of the domain's mean of what the equation conserves, in truth and prediction

    Every frame counts here, also where a task names times to score. Only sums and one number for each sample and
    frame are kept, so the set may be larger than memory.
    """
    frames = scored_frames(trajectories, model.signature.history, horizon).horizon
    first = 0 if trajectories.steady else model.signature.history
    start = 0.0 if trajectories.steady else float(trajectories.times[first - 1])
    times = [float(time) for time in trajectories.times[first : first + frames]]
    ahead = [time - start for time in times]
    names = [spec.name for spec in trajectories.fields]
    growth = ErrorGrowth(names, trajectories.grid)
    spectra = SpectrumProfile(names, trajectories.grid, spectrum_frames or _ends_and_middle(frames))
    drifts = None if trajectories.steady else DriftProfile(trajectories)
    for batch in predicted_batches(model, trajectories, samples, frames, batch_size=batch_size, progress=progress):
        growth.add(batch.frames, batch.window.targets)
        spectra.add(batch.frames, batch.window.targets)
        if drifts is not None:
            drifts.add(batch.window.inputs[:, -1], batch.frames, batch.window.targets)
    return as_json(
        task=trajectories.task,
        model=model.name,
        resolution=trajectories.grid.shape,
        num_samples=growth.num_samples,
        horizon=frames,
        times=times,
        lead_times=ahead,
        **growth.by_frame(),
        thresholds=None if drifts is None else growth.passing_times(ahead, thresholds),
        spectra=spectra.result(times),
        drift=None if drifts is None else drifts.result(),
    )


def _ends_and_middle(frames: int) -> list[int]:
    return sorted({0, frames // 2, frames - 1})
