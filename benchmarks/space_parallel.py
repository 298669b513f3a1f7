"""`python -m benchmarks.space_parallel`: one training step of a large field by one process, and cut among several.

Peak memory of a process, bytes that it puts into sums, and seconds of a step; kept in `space_parallel.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from benchmarks.memory import peak
from spectrakan.fields import Grid, GridPart, OperatorSignature, SpaceGroup
from spectrakan.models import build_model
from spectrakan.training.objective import loss

RECORD = Path(__file__).parent / "space_parallel.json"
CASES = {"2048": {"width": 8, "readout_width": 32}, "1024": {"width": 32}}
"""Cells along each of two axes, and the settings of the default model that differ."""
PROCESSES = (1, 4)


def step(cells: int, settings: dict[str, int], space: SpaceGroup) -> dict[str, float]:
    """Forward, backward and AdamW on this process's part of one sample of one field."""
    whole = Grid.uniform((cells, cells), boundary=("periodic", "periodic"))
    grid = GridPart.of(whole, space) if space.size > 1 else whole
    signature = OperatorSignature(
        space_dims=2, history=1, in_channels=1, out_channels=1, boundary=("periodic", "periodic")
    )
    torch.manual_seed(0)
    model = build_model("spectrakan", signature, **settings)
    frames = torch.randn(2, 1, 1, *grid.shape, 1, generator=torch.Generator().manual_seed(space.rank))
    optimizer = torch.optim.AdamW(model.parameters())
    space.exchanged, begin = 0, time.perf_counter()
    output = model.forward_normalized(frames[0], None, grid)
    loss("relative_l2", output[:, None], frames[1], grid=grid).mean().backward()
    exchanged = space.exchanged
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    return {"peak_mb": peak(), "exchanged_mb": exchanged / 1e6, "seconds": time.perf_counter() - begin}


def measure(cells: str, processes: int) -> dict[str, float]:
    """The step in processes of their own; the largest number of any process."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += ["-m", "benchmarks.space_parallel", cells]
    site = {**os.environ, "OMP_NUM_THREADS": "1"}
    said = subprocess.run(command, env=site, check=True, capture_output=True, text=True).stdout
    return {key: round(value, 3) for key, value in json.loads(said).items()}


def main() -> None:
    """Measure all, or be one of the processes."""
    if len(sys.argv) > 1:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        space = SpaceGroup()
        found = step(int(sys.argv[1]), CASES[sys.argv[1]], space)
        largest = space.largest(torch.tensor(list(found.values()), dtype=torch.float64))
        if space.rank == 0:
            print(json.dumps(dict(zip(found, largest.tolist(), strict=True))))
        dist.destroy_process_group()
        return
    record = {cells: {str(count): measure(cells, count) for count in PROCESSES} for cells in CASES}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
