"""Fisher-KPP beside a file that PDEBench's own generator wrote in float32 (256 points, 8 samples)."""

from __future__ import annotations

import h5py
import pytest
import torch

from spectrakan.pde.diffusion_reaction1d import DiffusionReaction1DParameters, solve


@pytest.fixture(scope="module")
def stored(reference_data) -> torch.Tensor:
    with h5py.File(reference_data / "pdebench_layout" / "ReacDiff_Nu0.5_Rho1.0.hdf5") as file:
        assert float(file.attrs["Nu"]) == 0.5
        assert float(file.attrs["rho"]) == 1.0
        return torch.from_numpy(file["tensor"][()]).double()


def frame_times(count: int) -> list[float]:
    return [frame / 100 for frame in range(count)]


def test_differs_by_float32_rounding_and_by_nothing_else(stored):
    """On 256 points a step is 2^-18 and adds rho u (1 - u) dt ~ 1e-6 to u, 16 times its rounding: the
    reaction drifts by parts in ten thousand but does not stall as it does on 1024 points.
    """
    frames = solve(stored[:, 0, :, None], frame_times(101), DiffusionReaction1DParameters())[..., 0]
    difference = (frames - stored).norm(dim=(0, 2)) / frames.norm(dim=(0, 2))
    assert float(difference.max()) < 5e-4
    assert float(difference[20:].mean()) > 2e-5
    drift = (frames - stored).mean((0, 2))
    assert float(drift.abs().max()) < 3e-4
    # The solver itself is a thousand times closer to the truth than that.
    finer = solve(stored[:, 0, :, None], [0.5], DiffusionReaction1DParameters(max_step=0.001))[:, 0, :, 0]
    assert float((finer - frames[:, 50]).abs().max()) < 1e-8
