"""Records of a campaign that never ran, with known numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.archive import Archive
from experiments.cells import Cell
from spectrakan.runs import make_record

TIMES = [0.5, 0.55]


def made_up(cell: Cell, rmse: float, seconds: float = 10.0, **details: Any) -> dict[str, Any]:
    """The record of a cell with this error; it doubles from the first frame to the second."""
    return make_record(
        table=cell.table,
        task=cell.case,
        model=cell.model,
        variant=cell.variant,
        scale=cell.scale,
        seed=cell.seed,
        resolution=[16],
        num_samples=10 if cell.case == "darcy2d" else 6,
        horizon=2,
        metrics={"rmse": rmse, "nrmse": rmse, "relative_l2": rmse},
        metrics_per_field={},
        parameters=1000,
        train_seconds=seconds,
        peak_memory_mb=100.0,
        config={},
        provenance={
            "versions": {"python": "3.11.0", "torch": "2.13.0"},
            "system": "Linux x86_64",
            "commit": "abc123",
            "data_sha256": "d" * 64,
            "device": "cpu",
            "threads": 1,
        },
        details={
            "case": cell.case,
            "label": cell.label,
            "test_sha256": "e" * 64,
            "validation": {"metrics": {"rmse": rmse, "relative_l2": rmse}},
            "times": TIMES,
            "metrics_per_frame": {"relative_l2": [rmse, 2 * rmse]},
            **details,
        },
    )


def long_rollout(end: float | None) -> dict[str, Any]:
    """What a record says of a rollout of ten frames, the last of which may be lost."""
    return {
        "horizon": 10,
        "num_samples": 1,
        "blown_up": int(end is None),
        "times": [0.5 + 0.05 * frame for frame in range(10)],
        "relative_l2": [0.1] * 9 + [end],
        "at_horizon": 0.1,
        "at_end": end,
        "growth": None if end is None else end / 0.1,
    }


def small_campaign(folder: Path) -> Archive:
    """Two models on 1D flow, SpectraKAN with two seeds, and a data-efficiency cell."""
    archive = Archive(folder / "results", folder / "cache", "smoke")
    errors = {("spectrakan", 0): 0.10, ("spectrakan", 1): 0.14, ("fno", 0): 0.30}
    for (model, seed), error in errors.items():
        cell = Cell("main", "smoke", "cns1d", model, seed=seed)
        end = 0.4 if model == "spectrakan" else None
        archive.keep(cell, made_up(cell, error, 20.0 if model == "fno" else 30.0, stability=long_rollout(end)))
    for model, error in {"spectrakan": 0.2, "fno": 0.5}.items():
        whole = Cell("main", "smoke", "darcy2d", model)
        archive.keep(whole, made_up(whole, error, times=[0.0], metrics_per_frame={"relative_l2": [error]}))
        fewer = Cell("data_efficiency", "smoke", "darcy2d", model, label="n5")
        archive.keep(fewer, made_up(fewer, 2 * error))
    return archive
