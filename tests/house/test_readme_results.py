"""What README, findings and the page of results tell is what the records say."""

from __future__ import annotations

import re
from pathlib import Path

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.document import results_page
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
    wins = sum(each.ratio < 1 for each in found if each is not None)
    assert f"RMSE on {['none', 'one', 'two', 'three', 'four', 'five', 'six'][wins]} of six tasks" in text


def test_the_findings_count_the_appendix_as_the_page_does():
    page, findings = ((ROOT / "docs" / name).read_text() for name in ("results.md", "findings.md"))
    counted = re.search(r"appendix columns won: (\d+ of 28)", page)
    assert counted is not None
    assert f"**The appendix.** {counted[1]} columns" in findings


def test_the_page_is_made_of_the_records():
    archive = Archive(ROOT / "results", ROOT / "results" / ".cache", "small")
    assert (ROOT / "docs" / "results.md").read_text() == results_page(archive)
