"""How far bounds lie above the worst that attacks find on trained models: `python -m benchmarks.certificates`.

Small SpectraKANs on three tasks; around samples that nobody has seen, bounds on token, modulation and prediction
beside ten thousand random pairs and gradient ascent from many starts. The last entry has a grid too large for proofs,
so its modulation and prediction are estimates, told apart. One record a study: a rerun does only what is missing.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from spectrakan.data.generate import generate
from spectrakan.runs import provenance
from spectrakan.theory import CertifySettings, certify
from spectrakan.theory.attack import AttackSettings
from spectrakan.training import train

MODEL = (
    "model.width=8",
    "model.num_modes=4",
    "model.num_layers=2",
    "model.coarse_num_layers=1",
    "runtime.threads=1",
)
ONE_STEP = ("training.mode=one_step", "training.horizon=1", "training.curriculum=0.0", "training.gradient_steps=1")
SAMPLES = 2
ATTACK = AttackSettings(starts=16, steps=20, pairs=10_000)


@dataclass(frozen=True)
class Study:
    """A task, what it is trained with, and the region of the certificate."""

    task: str
    cells: int
    radius: float
    settings: tuple[str, ...]


_REACTION = ("data.num_samples=40", "data.history=2", "training.epochs=4", *ONE_STEP)
_DARCY = ("data.num_samples=200", "training.epochs=10")
STUDIES = {
    "diffusion_reaction1d": Study("diffusion_reaction1d", 16, 0.1, _REACTION),
    "diffusion_reaction1d_near": Study("diffusion_reaction1d", 16, 0.01, _REACTION),
    "cns1d": Study("cns1d", 16, 0.05, ("data.num_samples=40", "data.history=1", "training.epochs=10", *ONE_STEP)),
    "darcy2d": Study("darcy2d", 12, 0.1, _DARCY),
    "darcy2d_near": Study("darcy2d", 12, 0.01, _DARCY),
    "darcy2d_large": Study("darcy2d", 32, 0.1, ("data.num_samples=100", "training.epochs=5")),
}


def certificate_of(study: Study) -> dict[str, Any]:
    """Train, certify around unseen samples, and keep every bound beside what attacks reached."""
    run = train(study.task, "spectrakan", [f"data.resolution={study.cells}", *study.settings, *MODEL])
    unseen = generate(study.task, num_samples=SAMPLES, resolution=study.cells, seed=1000)
    history = run.model.signature.history
    shown = unseen.values[:, :history] if unseen.inputs is None else unseen.inputs
    begin = time.process_time()
    found = certify(
        run.model,
        torch.as_tensor(shown[:], dtype=torch.float32),
        study.radius,
        grid=unseen.grid,
        config=CertifySettings(attack=ATTACK),
    )
    return {
        "task": study.task,
        "resolution": study.cells,
        "radius": study.radius,
        "settings": [*study.settings, *MODEL],
        "relative_l2": run.record["metrics"]["relative_l2"],
        "pairs": ATTACK.pairs,
        "seconds": round(time.process_time() - begin, 1),
        "ratio": {name: entry.ratio for name, entry in found.entries.items()},
        "beaten": list(found.beaten),
        "certificate": json.loads(found.to_json()),
        "provenance": provenance(),
    }


def main() -> None:
    """Run the studies that have no record yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--output", type=Path, default=Path("results/theory/certificates"))
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for name, study in STUDIES.items():
        place = output / f"{name}.json"
        if place.exists():
            continue
        record = certificate_of(study)
        place.write_text(json.dumps(record, indent=2) + "\n")
        print(name, "beaten:", record["beaten"], "ratios:", record["ratio"], flush=True)


if __name__ == "__main__":
    main()
