"""torch.export with symbolic batch and sizes; in a process of its own, for the tests' shape checks add guards."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import torch
import spectrakan as sk

torch.manual_seed(0)
facts = sk.OperatorSignature(space_dims=2, history=2, in_channels=2, out_channels=2, boundary=("periodic", "wall"))
cases = (("spectrakan", {}), ("spectrakan", {"coarse_num_layers": 2, "block": "skip"}), ("fno", {"padding": 0}),
         ("spectrakan", {"conditioning": "both", "pool": "dynamics", "history_decay": 0.5,
                         "multiplicative_readout": True}))
for name, choices in cases:
    model = sk.build_model(name, facts, width=8, **choices).double().eval()
    model.input_units.set(mean=torch.tensor([1.0, 2.0]), scale=torch.tensor([2.0, 0.5]))
    batch, x, y = (torch.export.Dim(name, min=low, max=high) for name, low, high in
                   (("batch", 1, 64), ("x", 16, 512), ("y", 16, 512)))
    traced_at = torch.randn(3, 2, 24, 32, 2, dtype=torch.float64)
    program = torch.export.export(model, (traced_at,), dynamic_shapes=({0: batch, 2: x, 3: y}, ))
    for shape in ((3, 24, 32), (2, 40, 64), (5, 33, 47), (2, 16, 17)):
        field = torch.randn(shape[0], 2, *shape[1:], 2, dtype=torch.float64)
        with torch.no_grad():
            error = (program.module()(field) - model(field)).abs().max().item()
        assert error < 1e-10, (name, choices, shape, error)
print("same")
"""


def test_exported_program_is_the_model_at_sizes_it_was_not_traced_at():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("same")
