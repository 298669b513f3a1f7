"""What Lipschitz control of the token does to long rollouts: `python -m benchmarks.lipschitz`.

Small SpectraKANs learn compressible flow by unrolling 4 frames and are rolled out over 4, 20 (five-fold) frames on
trajectories that nobody has seen. Beside the error: how much a small change of the first frame has grown by then.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spectrakan.data.files import write_dataset
from spectrakan.data.generate import generate
from spectrakan.evaluation import evaluate
from spectrakan.fields import Trajectories
from spectrakan.models.operator import Operator
from spectrakan.models.rollout import rollout
from spectrakan.runs import provenance
from spectrakan.theory.control import certified_bound
from spectrakan.theory.parts import token_kan
from spectrakan.training import train

TASK = "cns1d"
TRAINED = 4
HORIZONS = (TRAINED, 5 * TRAINED)
CELLS = 64
SAMPLES, UNSEEN = 32, 16
SETTINGS = [
    "data.history=1",
    f"data.horizon={5 * TRAINED}",
    "model.basis=fourier",
    "model.coarse_mixing=axial",
    "model.width=16",
    "model.num_modes=8",
    "model.num_layers=3",
    "model.coarse_num_layers=2",
    "model.coarse_num_modes=4",
    f"training.horizon={TRAINED}",
    "training.mode=autoregressive",
    "training.epochs=25",
    "training.batch_size=32",
    "training.learning_rate=0.004",
    "training.validate_epochs=5",
    "runtime.threads=1",
]
CONTROLS: dict[str, list[str]] = {
    "none": [],
    "penalty 0.01": ["penalty=0.01"],
    "cap 10": ["cap=10.0"],
    "cap 1": ["cap=1.0"],
    "cap 1 by the lemma": ["cap=1.0", "measure=lemma"],
}
SEEDS = (0, 1)
CHANGE = 0.01
"""Size of the change of the first frame, in units of the fields' spread."""


def measure(controls: dict[str, list[str]], seeds: tuple[int, ...]) -> dict[str, Any]:
    """Train every kind of control with every seed and roll it out."""
    unseen = generate(TASK, num_samples=UNSEEN, resolution=CELLS, seed=1000)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        seen = write_dataset(Path(place) / "seen.h5", generate(TASK, num_samples=SAMPLES, resolution=CELLS, seed=0))
        for seed in seeds:
            for name, chosen in controls.items():
                rows.append({"control": name, "seed": seed, **_run(seen, unseen, seed, chosen)})
                print(json.dumps(rows[-1]), flush=True)
    sizes = {"task": TASK, "cells": CELLS, "samples": SAMPLES, "unseen": UNSEEN, "trained_horizon": TRAINED}
    configs = {"settings": SETTINGS, "controls": controls}
    return {**sizes, **configs, "runs": rows, "means": _means(rows), "provenance": provenance()}


def _run(seen: Path, unseen: Trajectories, seed: int, chosen: list[str]) -> dict[str, Any]:
    begin = time.process_time()
    control = [f"training.lipschitz.{setting}" for setting in chosen]
    run = train(TASK, "spectrakan", [*SETTINGS, f"data.path={seen}", f"runtime.seed={seed}", *control])
    return {**_outcome(run.model, unseen), "cpu_seconds": round(time.process_time() - begin, 1)}


def _outcome(model: Operator, unseen: Trajectories) -> dict[str, Any]:
    kan = token_kan(model)
    errors = {
        str(horizon): evaluate(model, unseen, horizon=horizon)["metrics"]["relative_l2"] for horizon in HORIZONS
    }
    growth = _growth(model, unseen)
    return {
        "bound_hull": certified_bound(kan),
        "bound_lemma": certified_bound(kan, "lemma"),
        "relative_l2": errors,
        "growth": {str(horizon): float(growth[horizon - 1]) for horizon in HORIZONS},
    }


def _growth(model: Operator, unseen: Trajectories) -> Tensor:
    """Mean change of each frame of a rollout over the change of its first input, both at unit scale."""
    start = torch.as_tensor(unseen.values[:, : model.signature.history], dtype=torch.float32)
    drawn = torch.randn(start.shape, generator=torch.Generator().manual_seed(0))
    changed = start + CHANGE * model.input_units.scale * drawn
    horizon = max(HORIZONS)
    frames = [rollout(model, first, horizon) / model.output_units.scale for first in (start, changed)]
    size = (CHANGE * drawn).flatten(1).norm(dim=1)
    growth: Tensor = ((frames[1] - frames[0]).flatten(2).norm(dim=2) / size[:, None]).mean(0)
    return growth


def _means(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds, for each control."""
    found = {}
    for name in dict.fromkeys(row["control"] for row in rows):
        same = [row for row in rows if row["control"] == name]
        found[name] = {
            "bound_hull": statistics.mean(row["bound_hull"] for row in same),
            "bound_lemma": statistics.mean(row["bound_lemma"] for row in same),
            **{
                what: {key: statistics.mean(row[what][key] for row in same) for key in same[0][what]}
                for what in ("relative_l2", "growth")
            },
        }
    return found


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--output", type=Path, default=Path("results/theory/lipschitz_control.json"))
    output: Path = parser.parse_args().output
    record = measure(CONTROLS, SEEDS)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
