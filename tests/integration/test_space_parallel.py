"""Fields cut among processes against whole ones: outputs, gradients, statistics, training, memory and bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from space_process import results

SITE = {**os.environ, "OMP_NUM_THREADS": "1"}
SCRIPT = Path(__file__).parents[1] / "space_process.py"


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::spectrakan.errors.UnfittedWarning")
def test_cut_fields_give_the_outputs_and_gradients_of_whole_ones(processes, tmp_path):
    whole = results()
    save_file(whole, tmp_path / "whole.safetensors")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += [str(SCRIPT), str(tmp_path / "cut.safetensors"), str(tmp_path / "whole.safetensors")]
    subprocess.run(command, env=SITE, check=True, capture_output=True, timeout=300)
    cut = load_file(tmp_path / "cut.safetensors")
    assert cut.keys() == whole.keys()
    for key, expected in whole.items():
        # Least squares on splines with few samples amplify rounding; everything else is exact to it.
        allowed = 1e-5 if "fitted global_token" in key else 1e-10
        size = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
        assert torch.allclose(cut[key], expected, rtol=0, atol=allowed * size), key
    for case in {key.split(":")[0] for key in whole}:
        gradients = [value for key, value in whole.items() if key.startswith(f"{case}: gradient")]
        assert max(float(each.abs().max()) for each in gradients) > 1e-4, "gradients must have a size to compare"
