"""Where the numbers of some records come from, in a few lines that fold up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from spectrakan.report.elements import Origin

Record = dict[str, Any]


def origin_of(records: Sequence[Record], command: str) -> Origin:
    """The command that repeats them, versions, commits, machine, seeds and hashes of the data.

    What differs between records is listed, so that a table mixed from two versions shows it.
    """
    proofs = [record["provenance"] or {} for record in records]
    facts = [
        ("records", str(len(records))),
        ("seeds", _joined(sorted({record["seed"] for record in records}))),
        ("versions", _joined(_versions(proofs))),
        ("commit", _joined(dict.fromkeys(str(proof.get("commit") or "not known") for proof in proofs))),
        ("machine", _joined(dict.fromkeys(_machine(proof) for proof in proofs))),
        *_hashes(records),
    ]
    return Origin(f"Where these numbers come from: {len(records)} records", facts, (command,))


def _versions(proofs: Iterable[dict[str, Any]]) -> list[str]:
    found: dict[str, dict[str, None]] = {}
    for proof in proofs:
        for name, version in proof.get("versions", {}).items():
            found.setdefault(name, {})[str(version)] = None
    return [f"{name} {' and '.join(versions)}" for name, versions in found.items()]


def _machine(proof: dict[str, Any]) -> str:
    threads = proof.get("threads")
    told = [
        str(proof.get("system", "not known")),
        str(proof.get("device", "")),
        f"{threads} threads" if threads else "",
    ]
    return " ".join(filter(None, told))


def _hashes(records: Sequence[Record]) -> list[tuple[str, str]]:
    """SHA-256 of training and test data, by case."""
    train: dict[str, dict[str, None]] = {}
    test: dict[str, dict[str, None]] = {}
    for record in records:
        details = record.get("details") or {}
        case = str(details.get("case") or record["task"])
        if known := (record["provenance"] or {}).get("data_sha256"):
            train.setdefault(case, {})[str(known)] = None
        if known := details.get("test_sha256"):
            test.setdefault(case, {})[str(known)] = None
    named = (("training data", train), ("test data", test))
    return [(f"{kind}, {case}", _joined(found)) for kind, cases in named for case, found in cases.items()]


def _joined(parts: Iterable[Any]) -> str:
    return ", ".join(str(part) for part in parts) or "none"
