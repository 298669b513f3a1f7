"""What came of a run: its scores on the test part, and the record."""

from __future__ import annotations

from typing import Any

import torch

from spectrakan.config import as_mapping
from spectrakan.data.catalog import TASKS
from spectrakan.data.prepare import Prepared
from spectrakan.evaluation.anomaly import anomaly_scores
from spectrakan.evaluation.evaluate import accumulate, scored_frames, summary
from spectrakan.models.operator import Operator
from spectrakan.runs import make_record, provenance
from spectrakan.training.memory import peak_memory_mb
from spectrakan.training.runtime import Runtime
from spectrakan.training.settings import RunSettings


def final_scores(model: Operator, prepared: Prepared, choices: RunSettings, runtime: Runtime) -> dict[str, Any]:
    """Scores on the test part, whose samples the processes share; empty where there is no test part."""
    samples = list(prepared.split.part("test"))
    if not samples:
        return {}
    data = prepared.trajectories
    scored = scored_frames(data, prepared.history, choices.data.horizon)
    mine = runtime.share.part(len(samples))
    stream = accumulate(model, data, samples[mine.start : mine.stop], scored, batch_size=choices.training.batch_size)
    scores = summary(model, data, scored, runtime.share.join(stream, data.grid))
    if choices.task in TASKS and TASKS[choices.task].anomalies:
        _add_anomalies(scores, model, prepared, choices.training.batch_size)
    return scores


def record_of(
    model: Operator,
    prepared: Prepared,
    choices: RunSettings,
    scores: dict[str, Any],
    *,
    seconds: float,
    runtime: Runtime,
    digest: str,
) -> dict[str, Any]:
    """The record of a run; its config, data hash, seed and versions are enough to repeat it."""
    data = prepared.trajectories
    return make_record(
        table="main",
        task=choices.task,
        model=model.name,
        variant=choices.model["variant"],
        scale="custom",
        seed=choices.runtime.seed,
        resolution=list(data.grid.shape),
        num_samples=data.num_samples,
        horizon=scores.get("horizon"),
        metrics=scores.get("metrics", {}),
        metrics_per_field=scores.get("metrics_per_field", {}),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        train_seconds=round(seconds, 3),
        peak_memory_mb=round(peak_memory_mb(runtime.device), 1),
        config=as_mapping(choices),
        provenance=provenance(
            data_sha256=digest,
            device=runtime.device.type,
            processes=runtime.world_size,
            threads=torch.get_num_threads(),
            split=prepared.split.to_json(),
        ),
    )


def _add_anomalies(scores: dict[str, Any], model: Operator, prepared: Prepared, batch_size: int) -> None:
    """R² of departures from the training mean beside the other scores, by field and as their mean."""
    train, test = (list(prepared.split.part(name)) for name in ("train", "test"))
    explained = anomaly_scores(model, prepared.trajectories, train, test, batch_size=batch_size)
    for name, value in explained.items():
        scores["metrics_per_field"][name]["anomaly_r2"] = value
    scores["metrics"]["anomaly_r2"] = sum(explained.values()) / len(explained)
