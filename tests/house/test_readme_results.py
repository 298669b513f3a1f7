"""The README's table of ratios is that of the records."""

from __future__ import annotations

from pathlib import Path

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.scorecard import contests
from spectrakan.experiments.standings import Verdict, verdict
from spectrakan.experiments.summaries import Results, beyond_spread, row_name
from spectrakan.report.published import paper_ratio

ROOT = Path(__file__).resolve().parents[2]


def line(found: Verdict) -> str:
    """A row of the README's table."""
    theirs = paper_ratio(found.contest.paper)
    clear = "yes" if beyond_spread(found.ours, found.best) else "no"
    said = "–" if theirs is None else f"{theirs:.3f}"
    return f"| {found.contest.case} | {found.ratio:.3f} | {said} | {row_name(found.rival)} | {clear} |"


def test_the_readme_tells_the_ratios_of_the_records():
    archive = Archive(ROOT / "results", ROOT / "results" / ".cache", "small")
    results = Results.of(archive, "main")
    found = [verdict(results, contest) for contest in contests(archive)]
    assert len(found) == 6
    text = (ROOT / "README.md").read_text()
    for each in found:
        assert each is not None
        assert line(each) in text
