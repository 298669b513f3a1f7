"""The table of docs/reliability.md: every test that it names exists, with as many cases as it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "reliability.md").read_text().splitlines()
    if line.startswith("| ") and "tests/" in line
]


def named_tests(cell: str) -> list[str]:
    """`file`: `name`, `name`; ... as pytest writes them."""
    found = []
    for part in cell.split("; "):
        file, *names = re.findall(r"`([^`]+)`", part)
        found += [f"{file}::{name}" for name in names]
    return found


def test_the_tests_of_the_table_exist_with_the_number_of_cases_that_it_says():
    files = sorted({name.split("::")[0] for row in ROWS for name in named_tests(row[4])})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    cases = Counter(re.sub(r"\[.*", "", line) for line in listed if "::" in line)
    assert len(ROWS) > 20
    for row in ROWS:
        counts = [cases[name] for name in named_tests(row[4])]
        assert counts, row
        assert all(counts), row
        if row[2].endswith((" case", " cases")):
            assert row[2] == f"{sum(counts)} case{'s' if sum(counts) > 1 else ''}", row


def test_the_outcomes_of_the_slow_proofs_are_those_of_their_record():
    record = json.loads((ROOT / "results" / "reliability.json").read_text())
    text = (ROOT / "docs" / "reliability.md").read_text()
    for proof, found in record.items():
        for name, count in found["counts"].items():
            assert f"{count:,} {name.replace('_', ' ')}" in text, (proof, name)
