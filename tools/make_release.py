"""Build dist/: wheel and source archive twice, kept only if both builds are equal, with SBOM and checksums.

python tools/make_release.py [FOLDER]
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EPOCH = "1767225600"
"""Time stamp of the files in the archives where git knows no other."""


def build(folder: Path) -> dict[str, str]:
    """Wheel and source archive in `folder`; SHA-256 by file name."""
    stamp = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    environment = os.environ | {"SOURCE_DATE_EPOCH": stamp or EPOCH}
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def required(name: str, seen: dict[str, Any]) -> dict[str, Any]:
    """A package and all that it requires without extras, by normalised name, as far as installed."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in seen:
        return seen
    try:
        found = distribution(name)
    except PackageNotFoundError:  # needed on other systems only
        return seen
    seen[key] = found
    for line in found.requires or ():
        if "extra ==" not in line:
            required(re.match(r"[\w.-]+", line)[0], seen)  # type: ignore[index]
    return seen


def bill_of_materials(name: str = "spectrakan") -> dict[str, Any]:
    """The packages that an installation without extras brings, in CycloneDX's form."""
    parts = [
        {
            "type": "library",
            "name": key,
            "version": found.version,
            "purl": f"pkg:pypi/{key}@{found.version.split('+')[0]}",
            "licenses": [{"license": {"name": licence}}] if (licence := _licence(found)) else [],
        }
        for key, found in sorted(required(name, {}).items())
    ]
    own = next(part for part in parts if part["name"] == name)
    others = [part for part in parts if part is not own]
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1}
    return {**head, "metadata": {"component": {**own, "type": "application"}}, "components": others}


def _licence(found: Any) -> str:
    said = found.metadata.get("License-Expression") or (found.metadata.get("License") or "").strip().split("\n")[0]
    return str(said)[:80]


def main(folder: Path) -> None:
    """Build, compare, write."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        sums, again = build(Path(first)), build(Path(second))
        if sums != again:
            raise SystemExit(f"two builds differ: {sums} and {again}")
        for name in sums:
            (folder / name).write_bytes((Path(first) / name).read_bytes())
    sbom = json.dumps(bill_of_materials(), indent=1) + "\n"
    (folder / "sbom.cdx.json").write_text(sbom)
    sums["sbom.cdx.json"] = hashlib.sha256(sbom.encode()).hexdigest()
    (folder / "SHA256SUMS").write_text("".join(f"{total}  {name}\n" for name, total in sums.items()))
    for name, total in sums.items():
        print(f"{total}  {name}  {(folder / name).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
