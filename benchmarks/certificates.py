"""How far bounds lie above the worst that attacks find on trained runs: `python -m benchmarks.certificates RUN ...`.

Around the first test input of each run (`spectrakan train TASK`), at several radii: bounds on token, modulation and
prediction beside random pairs and gradient ascent. One record a run, in results/theory/certificates.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from spectrakan.cli.subject import load_subject
from spectrakan.runs import RunFolder, provenance
from spectrakan.theory import AttackSettings, certify_radii


def certificates_of(run: Path, resolution: int | None, radii: list[float], attack: AttackSettings) -> dict[str, Any]:
    """Certify around the first test input, and keep every bound beside what attacks reached."""
    folder = RunFolder(run)
    subject = load_subject(folder, None, resolution=resolution)
    model, window = subject.model, subject.first_window(1)
    begin = time.process_time()
    found = certify_radii(model, window.inputs, radii, params=window.params, grid=window.grid, config=attack)
    record = json.loads((run / "record.json").read_text())
    return {
        "task": record["task"],
        "trained_at": record["resolution"],
        "resolution": list(found[0].resolution),
        "config": record["config"],
        "relative_l2": record["metrics"]["relative_l2"],
        "pairs": attack.pairs,
        "starts": attack.starts,
        "cpu_seconds": round(time.process_time() - begin, 1),
        "ratio": {str(each.radius): {name: entry.ratio for name, entry in each.entries.items()} for each in found},
        "beaten": {str(each.radius): list(each.beaten) for each in found},
        "certificates": [_short(json.loads(each.to_json())) for each in found],
        "provenance": provenance(),
    }


def _short(certificate: dict[str, Any]) -> dict[str, Any]:
    """Without the matrices of edges, which are large."""
    return {name: value for name, value in certificate.items() if name != "edges"}


def main() -> None:
    """Certify the given runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--resolution", type=int, help="cells per axis; default: as trained")
    parser.add_argument("--radii", type=float, nargs="+", default=[0.01, 0.1])
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--output", type=Path, default=Path("results/theory/certificates"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for run in options.runs:
        attack = AttackSettings(starts=options.starts, steps=12, pairs=options.pairs)
        record = certificates_of(run, options.resolution, options.radii, attack)
        suffix = "" if options.resolution is None else f"_{options.resolution}"
        (options.output / f"{record['task']}_preset{suffix}.json").write_text(json.dumps(record, indent=2) + "\n")
        print(record["task"], "beaten:", record["beaten"], "ratios:", record["ratio"], flush=True)


if __name__ == "__main__":
    main()
