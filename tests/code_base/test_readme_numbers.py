"""The numbers that the README says of speed are those of the record beside the benchmarks."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("SpectraKAN (default)", "SpectraKAN (32 channels, 12 modes, 4 + 4 layers)")
PEER = "FNO(12, 12)"


def ratios(rows: list[dict], value: str) -> dict[int, list[float]]:
    """Ours over the peer's, by size."""
    found = {(row["model"], row["cells"]): row[value] for row in rows}
    return {
        size: [found[name, size] / found[PEER, size] for name in OURS]
        for size in sorted({row["cells"] for row in rows})
    }


def test_the_readme_tells_what_was_measured():
    record = json.loads((ROOT / "benchmarks" / "record.json").read_text())
    text = " ".join((ROOT / "README.md").read_text().split())
    steps = ratios([row for row in record["operators"] if row["kind"] == "training step"], "seconds")
    every = [ratio for found in steps.values() for ratio in found]
    assert f"takes {min(every):.2f} to {max(every):.2f} of FNO's time" in text
    memory = [ratio for found in ratios(record["memory"], "megabytes").values() for ratio in found]
    assert f"{min(memory):.1f} to {max(memory):.1f} of its memory" in text
    answers = ratios([row for row in record["operators"] if row["kind"] == "batch-1 inference"], "seconds")
    larger = answers[128] + answers[256]
    assert f"inferred in {min(larger):.1f} to {max(larger):.1f} of its time at 128² and 256²" in text
    assert f"in {min(answers[64]):.1f} to {max(answers[64]):.1f} at 64²" in text
    splines = {row["batch"]: row["pykan"] / row["ours"] for row in record["kan"]}
    assert f"{splines[4096]:.1f} times as fast as pykan at a batch of 4096" in text
    assert f"{splines[256]:.1f} times at 256 and {splines[16]:.1f} times at 16" in text
    powers = [record["growth"][name] for name in OURS]
    assert f"to the power {min(powers):.2f} to {max(powers):.2f}" in text
    both = {
        kind: [row for row in record["two_threads"] if row["kind"].endswith(kind)] for kind in ("step", "inference")
    }
    (two,), (answered,) = (ratios(rows, "seconds").values() for rows in both.values())
    said = f"a step takes {min(two):.2f} to {max(two):.2f} of FNO's time, inference {min(answered):.2f} to"
    assert f"{said} {max(answered):.2f}" in text
    kept = ratios([row for row in record["kept_memory"] if row["kind"] == "training step"], "seconds")
    first, second, third = (f"{kept[size][0]:.2f}" for size in (64, 128, 256))
    assert f"the default's step takes {first}, {second} and {third} of FNO's at 64², 128² and 256²" in text
    plain = record["ffno"]["ours"] / record["ffno"]["plain"]
    assert f"F-FNO takes {plain:.2f} of the time of its authors' form" in text
    least = [(row["products"] + row["nonlinearities"]) / row["seconds"] for row in record["limit"]["rows"]]
    assert f"{100 * min(least):.0f} to {100 * max(least):.0f} % of the default's step" in text


def test_the_readme_tells_when_the_final_error_of_fno_is_reached():
    found = json.loads((ROOT / "results" / "short" / "time_to_error.json").read_text())
    text = " ".join((ROOT / "README.md").read_text().split())
    names = {
        "droplet2d": "on droplets",
        "cns1d": "on compressible flow",
        "diffusion_reaction1d": "on diffusion-reaction",
        "shallow_water2d": "on shallow water",
        "darcy2d": "on Darcy flow",
    }
    assert found.keys() == names.keys()
    for case, entry in found.items():
        assert re.search(rf"{entry['time_over_fno']:.2f} (of FNO's training time )?{names[case]}", text), case
