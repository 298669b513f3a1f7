"""Time to FNO's final error: the shortest of some trainings of SpectraKAN that ends below it.

    python -m experiments.time_to_error [CASE ...] [--scale short]

A shorter training takes a share of the training samples for the same number of epochs, so that its rate rises and
falls in a share of the steps; with all samples at hand it would do no worse. Its time over that of FNO is this share
times the ratio of their steps, taken in turns (`costs.measure_beside_fno`). Errors are those on development samples,
which no test shares. Climate data are no solver's, so they have no such samples and are left out.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.cells import Cell, run_settings
from experiments.costs import ROUNDS, measure_beside_fno
from experiments.main import TABLE
from experiments.scales import case_named, scale_named
from spectrakan.config import as_mapping
from spectrakan.storage import write_text_atomically
from spectrakan.training import train

SHARES = (0.25, 0.5, 0.75, 1.0)
SEED = 777
"""Seed of the development samples."""
FILE = "time_to_error.json"


def final_error(scale: str, case: str, model: str, share: float = 1.0) -> float:
    """RMSE on development samples after training on a share of the samples."""
    config = run_settings(Cell(TABLE, scale, case, model))
    count = config.data.num_samples
    if count is None:
        raise ValueError(f"case {case} names no number of samples")
    data = replace(config.data, num_samples=round(share * count), test_samples=max(20, count // 5), test_seed=SEED)
    run = train(as_mapping(replace(config, data=data)), progress=False)
    return float(run.record["metrics"]["rmse"])


def time_to_error(scale: str, case: str) -> dict[str, Any]:
    """Errors by share of the steps, up to the first below FNO's, and the ratio of times; None if none is below."""
    limit, ratio = final_error(scale, case, "fno"), None
    step = measure_beside_fno(scale, case, "spectrakan", ROUNDS)
    errors: dict[str, float] = {}
    for share in SHARES:
        errors[str(share)] = final_error(scale, case, "spectrakan", share)
        if errors[str(share)] <= limit:
            ratio = share * step["spectrakan"] / step["fno"]
            break
    return {"fno": limit, "spectrakan": errors, "step_seconds": step, "time_over_fno": ratio}


def main() -> None:
    """Measure some cases and keep them beside the others of the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--scale", default="short")
    parser.add_argument("--results", type=Path, default=Path("results"))
    asked = parser.parse_args()
    path = asked.results / asked.scale / FILE
    known = [case for case in scale_named(asked.scale).main_cases if case_named(case).problem.equation is not None]
    for case in asked.cases or known:
        found = json.loads(path.read_text()) if path.is_file() else {}
        found[case] = time_to_error(asked.scale, case)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, json.dumps(found, indent=1) + "\n")
        print(f"{case}: {found[case]}", flush=True)


if __name__ == "__main__":
    main()
