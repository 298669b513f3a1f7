"""What an operator says beyond the mean field: its score on departures from the training climatology."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from spectrakan.data.windows import Windows, WindowSettings
from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import predict_frames
from spectrakan.fields import Trajectories
from spectrakan.metrics import anomaly_r2
from spectrakan.models.operator import Operator


def anomaly_scores(
    model: Operator,
    trajectories: Trajectories,
    train: Sequence[int],
    test: Sequence[int],
    *,
    batch_size: int = 16,
) -> dict[str, float]:
    """R² of anomalies of each output field on the `test` samples, against the mean field of the `train` ones.

    For steady tasks whose fields hardly leave their mean, such as pressure, where a relative error says little.
    """
    if not trajectories.steady or not train or not test:
        raise ConfigError("anomalies need a steady task with samples to train and to test on")
    usual = sum(np.asarray(trajectories.values[index], dtype=np.float64)[0] for index in train) / len(train)
    windows = Windows(trajectories, test, WindowSettings(history=1, horizon=1, starts="first"))
    pred, truth = [], []
    for first in range(0, len(windows), batch_size):
        window = windows.gather(range(first, min(first + batch_size, len(windows))))
        pred.append(predict_frames(model, window.inputs, 1, window.params, window.grid))
        truth.append(window.targets)
    scores = anomaly_r2(torch.cat(pred), torch.cat(truth).cpu(), torch.as_tensor(usual), trajectories.grid.volumes())
    return {spec.name: float(score) for spec, score in zip(trajectories.fields, scores, strict=True)}
