"""The numbers that the README says of speed are those of the record beside the benchmarks."""

from __future__ import annotations

import json
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
    assert splines[16] < 1.05
    assert max(record["growth"][name] for name in OURS) < 1.05
