"""What came of a run: its scores on the test part, and the record."""

from __future__ import annotations

from typing import Any

import torch

from spectrakan.config import as_mapping
from spectrakan.data.prepare import Prepared
from spectrakan.evaluation import EvaluationSettings, evaluate
from spectrakan.fields.grid_part import whole_of
from spectrakan.models.operator import Operator
from spectrakan.runs import make_record, provenance
from spectrakan.training.runtime import Runtime
from spectrakan.training.settings import RunSettings


def final_scores(model: Operator, prepared: Prepared, config: RunSettings, runtime: Runtime) -> dict[str, Any]:
    """Scores on the test part, whose samples the processes share; empty where there is no test part."""
    part = prepared.part("test")
    if not part.samples:
        return {}
    # A problem with times of its own to score has no horizon beside them.
    own = None if prepared.problem.scored_times or prepared.trajectories.steady else prepared.horizon
    return evaluate(
        model,
        part.trajectories,
        horizon=config.data.horizon or own,
        samples=part.samples,
        anomalies_from=prepared.part("train").samples if prepared.problem.anomalies else None,
        settings=EvaluationSettings(batch_size=config.training.batch_size, share=runtime.share),
    )


def record_of(
    model: Operator,
    prepared: Prepared,
    config: RunSettings,
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
        task=config.task,
        model=model.name,
        variant=config.model["variant"],
        scale=config.budget,
        seed=config.runtime.seed,
        resolution=list(whole_of(data.grid).shape),
        num_samples=data.num_samples,
        horizon=scores.get("horizon"),
        metrics=scores.get("metrics", {}),
        metrics_per_field=scores.get("metrics_per_field", {}),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        train_seconds=round(seconds, 3),
        peak_memory_mb=round(runtime.peak_memory_mb(), 1),
        config=as_mapping(config),
        provenance=provenance(
            data_sha256=digest,
            device=runtime.device.type,
            processes=runtime.world_size,
            threads=torch.get_num_threads(),
            split=prepared.split.to_json(),
        ),
    )
