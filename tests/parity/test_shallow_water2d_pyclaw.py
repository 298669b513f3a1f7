"""The dam break against heights that PyClaw computed."""

from __future__ import annotations

from pathlib import Path

import h5py
import torch

from spectrakan.pde.shallow_water2d import EQUATION, ShallowWaterParameters, solve


def test_stored_heights_are_met_in_all_frames(reference_data: Path):
    """Roe's solver with Godunov splitting there, unsplit HLL here; both second order with the MC limiter."""
    with h5py.File(reference_data / "pdebench_layout" / "2D_rdb_NA_NA.h5") as file:
        stored = torch.stack([torch.from_numpy(file[f"{k:04d}/data"][..., 0]) for k in range(4)]).double()
        times = [float(time) for time in file["0000/grid/t"][:]]
        x = torch.from_numpy(file["0000/grid/x"][:]).double()
    torch.testing.assert_close(EQUATION.grid().coordinates[0], x, rtol=1e-6, atol=1e-6)
    rest = torch.zeros_like(stored[:, 0])
    height = solve(torch.stack([stored[:, 0], rest, rest], dim=-1), times, ShallowWaterParameters())[..., 0]
    differences = (height - stored).flatten(1).norm(dim=1) / stored.flatten(1).norm(dim=1)
    assert float(differences.max()) <= 0.005
