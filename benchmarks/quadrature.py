"""How the modulation of trained models converges on finer grids: `python -m benchmarks.quadrature`.

Small SpectraKANs on periodic flow and on flow through porous ground between walls; then, for samples that nobody has
seen, the error of A_h on finer and finer grids beside the constant of Proposition 3.3 and ours.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from benchmarks.attention_quadrature import attention_quadrature
from spectrakan.data.generate import generate
from spectrakan.fields import Trajectories
from spectrakan.runs import provenance
from spectrakan.training import train

MODEL = [
    "model.width=12",
    "model.num_modes=6",
    "model.num_layers=2",
    "model.coarse_num_layers=1",
    "runtime.threads=1",
]
ONE_STEP = ["training.mode=one_step", "training.horizon=1", "training.curriculum=0.0"]
STUDIES: dict[str, tuple[int, list[str], tuple[int, ...]]] = {
    "cns1d": (
        64,
        ["data.num_samples=12", "data.history=1", "data.horizon=5", "training.epochs=6", *ONE_STEP],
        (16, 32, 64, 128, 256, 512, 1024, 2048),
    ),
    "darcy2d": (32, ["data.num_samples=64", "training.epochs=15"], (8, 16, 32, 64, 128, 256)),
}
UNSEEN = 4


def study(task: str) -> dict[str, Any]:
    """Train on one task and study the modulation of unseen inputs."""
    cells, settings, sizes = STUDIES[task]
    run = train(task, "spectrakan", [f"data.resolution={cells}", *settings, *MODEL])
    unseen = generate(task, num_samples=UNSEEN, resolution=cells, seed=1000)
    found = attention_quadrature(run.model, _inputs(unseen), cells=sizes)
    return {
        "resolution": cells,
        "settings": [*settings, *MODEL],
        "relative_l2": run.record["metrics"]["relative_l2"],
        **found.to_json(),
    }


def _inputs(unseen: Trajectories) -> torch.Tensor:
    shown = unseen.values[:, :1] if unseen.inputs is None else unseen.inputs
    return torch.as_tensor(shown[:], dtype=torch.float32)


def main() -> None:
    """Study every task and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--output", type=Path, default=Path("results/theory/quadrature.json"))
    output: Path = parser.parse_args().output
    record = {**{task: study(task) for task in STUDIES}, "provenance": provenance()}
    print(json.dumps(record))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
