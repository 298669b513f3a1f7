"""How long a user waits for samples: `sk.generate` with each task's defaults, on two cores, by the clock."""

from __future__ import annotations

import time

import numpy as np
import torch

import spectrakan as sk

SAMPLES = 1000
LIMITS = {
    "darcy2d": 45,
    "droplet2d": 45,
    "diffusion_reaction1d": 20,
    "shallow_water2d": 150,
    "cns1d": 300,
}
"""Seconds that 1,000 samples may take."""


def generation(samples: int = SAMPLES) -> list[dict[str, object]]:
    """Seconds on the clock and of CPU for `samples` samples of every solved task."""
    rows: list[dict[str, object]] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for task, limit in LIMITS.items():
            sk.generate(task, num_samples=2)  # what is loaded once is not counted
            started, worked = time.perf_counter(), time.process_time()
            sk.generate(task, num_samples=samples, seed=1, dtype=np.float32)
            rows.append(
                {
                    "task": task,
                    "samples": samples,
                    "seconds": time.perf_counter() - started,
                    "cpu_seconds": time.process_time() - worked,
                    "limit": limit,
                }
            )
    finally:
        torch.set_num_threads(threads)
    return rows
