"""Records as a campaign would leave them, made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.archive import Archive
from experiments.cells import Cell, comparable, run_settings
from spectrakan.config import as_mapping
from spectrakan.runs import make_record

METRICS = ("rmse", "nrmse", "max_error", "crmse", "brmse", "frmse_low", "frmse_mid", "frmse_high", "relative_l2")

Keep = Callable[..., dict[str, Any]]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "results", tmp_path / "cache", "smoke")


@pytest.fixture
def keep(archive: Archive) -> Keep:
    def write(cell: Cell, error: float | None, validation: float | None = None, **details: Any) -> dict[str, Any]:
        validated = error if validation is None else validation
        record = make_record(
            table=cell.table,
            task=cell.case,
            model=cell.model,
            variant=cell.variant,
            scale=cell.scale,
            seed=cell.seed,
            resolution=[16, 16],
            num_samples=10,
            metrics=dict.fromkeys(METRICS, error),
            metrics_per_field={field: {"relative_l2": error} for field in ("rho", "velocity_x", "velocity_y")},
            parameters=1000,
            train_seconds=30.0 if cell.model == "fno" else 40.0,
            peak_memory_mb=500.0,
            config=comparable(as_mapping(run_settings(cell))),
            provenance={"data_sha256": "0"},
            details={
                "case": cell.case,
                "label": cell.label,
                "steps": 10,
                "validation": {"metrics": dict.fromkeys(METRICS, validated)},
                **details,
            },
        )
        archive.keep(cell, record)
        return record

    return write
