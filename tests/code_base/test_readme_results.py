"""README, findings and the page of results hold the numbers of the records in `results/small`, which are frozen."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from experiments import appendix, attribution
from experiments.archive import Archive
from experiments.catalog import SECTIONS
from experiments.comparison import Comparison, compare
from experiments.main import contests
from experiments.standings import Verdict, paper_ratio, verdict
from experiments.summaries import Results, row_name
from spectrakan.report.table import to_markdown

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = Archive(ROOT / "results", ROOT / "results" / ".cache", "small")
WITHOUT_RECORDS = ("Families and attribution", "What the token knows", "Out of the box", "Spatial means")
"""Sections that came after the campaign at `small`."""
OTHERS = ("Ablation: architecture", "Learning rates", *WITHOUT_RECORDS)
SAME = [title for title in SECTIONS if title not in OTHERS]
"""Sections whose tables have the same rows now as when the page was written; trials have other names."""


def errors(results: Results, case: str, model: str) -> list[float]:
    """RMSE of the seeds of a model."""
    found = results.find(case, model)
    assert found is not None
    return [record["metrics"]["rmse"] for record in found.records]


def line(found: Verdict, compared: Comparison) -> str:
    """A row of the README's table."""
    theirs = paper_ratio(found.contest.paper)
    shown = "–" if theirs is None else f"{theirs:.3f}"
    name, words = row_name(found.baseline), f"{compared.corrected:.3f} | {compared.verdict}"
    return f"| {found.contest.case} | {compared.ratio:.3f} | {shown} | {name} | {words} |"


def test_the_readme_has_the_ratios_and_tests_of_the_records():
    results = Results.of(ARCHIVE, "main")
    found = {contest.case: verdict(results, contest) for contest in contests(results)}
    assert len(found) == 6
    pairs = {
        case: (errors(results, case, "spectrakan"), errors(results, case, each.baseline))
        for case, each in found.items()
        if each is not None
    }
    text = (ROOT / "README.md").read_text()
    for case, compared in compare(pairs).items():
        each = found[case]
        assert each is not None
        assert line(each, compared) in text


SHORT = Archive(ROOT / "results", ROOT / "results" / ".cache", "short")


def test_the_page_of_families_has_the_tables_of_the_records():
    page = (ROOT / "docs" / "results_short.md").read_text()
    for table in SECTIONS["Families and attribution"](SHORT):
        assert to_markdown(table).strip() in page, table.title


@pytest.mark.parametrize("name", ["README.md", "docs/findings.md"])
def test_what_conditioning_is_worth_is_told_as_the_records_say(name: str):
    made = to_markdown(attribution.overview(SHORT))
    assert made.strip() in (ROOT / name).read_text()


def test_wins_tails_and_times_are_told_as_the_records_say():
    results, text = Results.of(SHORT, "families"), " ".join((ROOT / "README.md").read_text().split())
    found = attribution.against_unconditioned(results, attribution.COMPETITORS)
    wins = [compared for _, compared in found.values() if compared.verdict == "wins"]
    assert len(wins) == 4
    assert len(found) == 6
    assert "wins over the best unconditioned model on four of these six cases" in text
    for compared in wins:
        assert re.search(rf"\({compared.ratio:.2f}, (corrected )?{_chance(compared)}\)", text)
    assert [compared.ratio <= 0.85 for compared in wins].count(True) == 2
    tails = {
        name: attribution.against_unconditioned(
            results, attribution.COMPETITORS, lambda record, name=name: record["details"]["tails"][name]
        )
        for name in ("median", "percentile_99", "worst")
    }
    loses = tails["median"]["droplet2d_hidden"][1]
    assert f"droplets with hidden gravity is {loses.ratio:.2f} ({_chance(loses)})" in text
    higher, worst = tails["percentile_99"]["cns1d_given"][1].ratio, tails["worst"]["burgers1d_hidden"][1].ratio
    assert (
        f"given viscosities is {higher:.2f} of F-FNO's, the worst sample of hidden Burgers parameters {worst:.2f}"
        in text
    )
    seconds = {
        name: [mean_seconds(results, case, name) / mean_seconds(results, case, "whole") for case in results.cases()]
        for name in ("ffno", "no_token")
    }
    (low, high), (less, more) = ((min(each), max(each)) for each in seconds.values())
    assert (
        f"{low:.1f} to {high:.1f} of the training time, SpectraKAN without a token {less:.1f} to {more:.1f}" in text
    )


def _chance(compared: Comparison) -> str:
    return "p < 0.001" if compared.corrected < 0.001 else f"p = {compared.corrected:.3f}"


def test_failed_trainings_and_the_rival_with_the_same_summary_are_told_as_the_records_say():
    results, text = Results.of(SHORT, "families"), " ".join((ROOT / "README.md").read_text().split())
    whole = results.find("cns1d_given", "spectrakan", "default", "whole")
    assert whole is not None
    errors_of = [record["metrics"]["rmse"] for record in whole.records]
    failed, others = max(errors_of), sorted(errors_of)[:-1]
    assert f"from {sum(others) / len(others):.2f} to {sum(errors_of) / len(errors_of):.2f}" in text
    assert f"(error {failed:.2f})" in text
    trial = "search/cns1d_given-spectrakan-default-s4-range_margin0.1.json"
    cured = json.loads((ROOT / "results" / "short" / trial).read_text())["details"]["development"]["rmse"]
    assert f"{cured:.2f} on development samples" in text
    both = []
    for name in ("ffno_film", "whole"):
        found = results.find("burgers1d_hidden", attribution.COMPETITORS[name].model, "default", name)
        assert found is not None
        both.append(sum(record["metrics"]["rmse"] for record in found.records) / len(found.records))
    assert f"({both[0]:.3g} and {both[1]:.3g})" in text


def mean_seconds(results: Results, case: str, name: str) -> float:
    """Mean CPU seconds of the trainings of a row of the families."""
    found = results.find(case, attribution.COMPETITORS[name].model, "default", name)
    assert found is not None
    seconds = found.score(lambda record: record["train_seconds"]).value
    assert seconds is not None
    return seconds


def test_the_findings_count_the_appendix_as_the_records_do():
    found = appendix.verdicts(ARCHIVE)
    counted = f"{sum(each.won for each in found)} of {len(found)}"
    page, findings = ((ROOT / "docs" / name).read_text() for name in ("results.md", "findings.md"))
    assert f"appendix columns won: {counted}" in page
    assert f"**The appendix.** {counted} columns" in findings


def rows_below(page: str, title: str) -> list[str]:
    """The rows of the table under a heading."""
    part = page.split(f"\n### {title}\n", 1)[1].split("\n#", 1)[0]
    return [text for text in part.splitlines() if text.startswith("|")]


@pytest.mark.parametrize("title", SAME)
def test_the_page_has_the_tables_of_the_records(title: str):
    page = (ROOT / "docs" / "results.md").read_text()
    tables = SECTIONS[title](ARCHIVE)
    assert tables
    for table in tables:
        made = [text for text in to_markdown(table).splitlines() if text.startswith("|")]
        kept = rows_below(page, table.title)
        if title.startswith("Trials"):
            made, kept = (sorted(re.sub(r"^\| [^|]*\|", "|", text) for text in rows) for rows in (made, kept))
        assert made == kept, table.title


def test_ablations_of_the_page_are_the_records():
    page = (ROOT / "docs" / "results.md").read_text()
    (table,) = SECTIONS["Ablation: architecture"](ARCHIVE)
    made = [text.split("|")[2].strip() for text in to_markdown(table).splitlines() if text.startswith("|")]
    kept = [text.split("|")[2].strip() for text in rows_below(page, table.title)]
    assert sorted(value for value in made if value != "–") == sorted(kept)
