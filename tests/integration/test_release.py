"""The release: builds that are equal byte for byte, a small wheel, a list of parts, one version everywhere."""

from __future__ import annotations

import json
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import spectrakan

ROOT = Path(__file__).resolve().parents[2]
SHIPPED_DATA = ("spectrakan/pretrained/", "spectrakan/data/climate_daily.npz")
MOST_BYTES = 2_000_000
"""Size of the wheel besides pretrained weights and climate days."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    sys.path.insert(0, str(ROOT / "tools"))
    import make_release

    folder = tmp_path_factory.mktemp("dist")
    make_release.main(folder)  # builds twice and refuses builds that differ
    return folder


def test_the_wheel_is_small_and_holds_the_library_alone(release: Path):
    (wheel,) = release.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        own = [entry for entry in archive.infolist() if not entry.filename.startswith(SHIPPED_DATA)]
        names = archive.namelist()
    assert sum(entry.compress_size for entry in own) <= MOST_BYTES
    assert all(name.startswith(("spectrakan/", "spectrakan-")) for name in names)
    assert "spectrakan/py.typed" in names
    assert f"spectrakan-{spectrakan.__version__}.dist-info/licenses/LICENSE" in names


def test_the_checksums_and_the_list_of_parts_are_complete(release: Path):
    listed = dict(reversed(line.split()) for line in (release / "SHA256SUMS").read_text().splitlines())
    assert listed.keys() == {path.name for path in release.iterdir()} - {"SHA256SUMS"}
    parts = json.loads((release / "sbom.cdx.json").read_text())
    names = {part["name"] for part in parts["components"]}
    pyproject = (ROOT / "pyproject.toml").read_text()
    direct = re.search(r"\ndependencies = \[(.*?)\n\]", pyproject, re.DOTALL)
    assert direct is not None
    assert {re.match(r"[\w.-]+", line)[0] for line in re.findall(r'"([^"]+)"', direct[1])} <= names
    assert all(re.match(r"\d", part["version"]) for part in parts["components"])


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(release: Path):
    import try_install  # tools/ is on the path since the release was made

    (wheel,) = release.glob("*.whl")
    found = try_install.attempt("serve", wheel)  # `from_pretrained` predicts, `spectrakan serve` answers
    assert found["works"], found


def test_one_version_everywhere():
    version = spectrakan.__version__
    assert f'\nversion = "{version}"' in (ROOT / "pyproject.toml").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^## {re.escape(version)}$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_lock_has_every_direct_dependency_with_hashes_and_names_no_host():
    lock = (ROOT / "requirements.lock").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==([\w.]+)[^\n]*\\\n    --hash=sha256:", lock, re.MULTILINE))
    assert pinned["torch"] == "2.13.0"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = [
        *project["dependencies"],
        *(word for words in project["optional-dependencies"].values() for word in words),
    ]
    names = {re.match(r"[\w.-]+", word)[0].lower().replace("_", "-") for word in direct} - {"spectrakan"}
    assert names <= pinned.keys()
    assert "://" not in lock
