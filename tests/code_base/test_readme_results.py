"""README, findings and the page of results hold the numbers of the records in `results/small`, which are frozen."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from experiments import appendix, attribution, out_of_the_box
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


def test_trials_of_the_present_defaults_are_told_as_the_records_say():
    """Rates of both models, and sizes of F-FNO, on the six tasks."""
    text, errors_of = " ".join((ROOT / "README.md").read_text().split()), {}
    for record in [*SHORT.records("rates"), *SHORT.records("search")]:
        details, model = record["details"], record["model"]
        sized = model == "ffno" and details["label"].startswith("f_")
        if record["variant"] == "default" and (record["table"] == "rates" or sized):
            error = details["validation"]["metrics"]["relative_l2"]
            errors_of.setdefault((details["case"], model), []).append(math.inf if error is None else error)
    names = {
        "cns1d": "on compressible flow", "diffusion_reaction1d": "on diffusion-reaction", "darcy2d": "on Darcy flow",
        "shallow_water2d": "on shallow water", "droplet2d": "on droplets", "climate2d": "on the climate",
    }  # fmt: skip
    for case, name in names.items():
        ratio = min(errors_of[case, "spectrakan"]) / min(errors_of[case, "ffno"])
        assert re.search(rf"{ratio:.2f} (of the relative L2 error of F-FNO's best trial )?{name}", text), case


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
    assert all(compared.ratio < 1 for _, compared in found.values())
    assert "SpectraKAN has the lowest mean on all six" in text
    worst = attribution.against_unconditioned(
        results, attribution.COMPETITORS, lambda record: record["details"]["tails"]["worst"]
    )
    better = [compared.ratio for _, compared in worst.values() if compared.ratio < 1]
    said = f"worst samples are {min(better):.2f} to {max(better):.2f} of the best unconditioned model's on four cases"
    assert said in text
    assert len(better) == 4
    hidden, gravity = worst["burgers1d_hidden"][1], worst["droplet2d_hidden"][1]
    assert f"{hidden.ratio:.2f} on hidden Burgers parameters ({_chance(hidden)})" in text
    assert f"{gravity.ratio:.2f} on droplets with hidden gravity ({_chance(gravity)})" in text
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


def test_the_first_test_is_told_as_its_records_say():
    """That of families without limits: the training that failed, and F-FNO with the same summary."""
    first, text = Results.of(SHORT, "families_without_limits"), " ".join((ROOT / "README.md").read_text().split())
    assert f"(error {max(_errors(first, 'cns1d_given', 'whole')):.2f})" in text
    assert f"(at most {max(_errors(Results.of(SHORT, 'families'), 'cns1d_given', 'whole')):.2f};" in text
    means = {name: [fmean(_errors(first, case, name)) for case in first.cases()] for name in ("ffno_film", "whole")}
    level = first.cases().index("burgers1d_hidden")
    assert f"({means['ffno_film'][level]:.3g} and {means['whole'][level]:.3g})" in text
    ahead = [ours < theirs for theirs, ours in zip(*means.values(), strict=True)]
    del ahead[level]
    assert ahead.count(True) == 4
    assert "ahead of it on four of the other five" in text
    second = Results.of(SHORT, "families")
    film, whole = ({case: _errors(second, case, name) for case in first.cases()} for name in ("ffno_film", "whole"))
    assert {len(errors) for errors in film.values()} == {2, 3}
    assert "with two or three of its five seeds so far" in text
    lower = [case for case in first.cases() if fmean(whole[case]) < fmean(film[case])]
    assert set(first.cases()) - set(lower) == {"burgers1d_hidden"}
    assert "a lower mean of the whole model on the other five" in text


def _errors(results: Results, case: str, name: str) -> list[float]:
    """RMSE of the seeds of a row of the families."""
    found = results.find(case, attribution.COMPETITORS[name].model, "default", name)
    assert found is not None
    return [record["metrics"]["rmse"] for record in found.records]


Record = Mapping[str, Any]


def test_problems_that_no_preset_was_tuned_on_are_told_as_the_records_say():
    results, text = Results.of(SHORT, "unseen"), " ".join((ROOT / "README.md").read_text().split())
    said = out_of_the_box.verdicts(results)
    names = {
        "kuramoto_sivashinsky1d": "Kuramoto-Sivashinsky",
        "gray_scott2d": "Gray-Scott",
        "vorticity2d": "vorticity",
    }
    assert said.keys() == names.keys()
    assert "SpectraKAN wins none" in text
    for case, name in names.items():
        ratio, chance, verdict = re.fullmatch(r"([\d.]+) of FFNO \(p = ([\d.]+)\): (.*)", said[case]).groups()
        assert re.search(
            rf"{float(ratio):.2f} (of F-FNO's error )?on (forced )?{name} \(p = {chance}: {verdict}\)", text
        )

    def over(model: str, number: Callable[[Record], float]) -> tuple[float, float]:
        """The least and the largest ratio of a model's mean over SpectraKAN's."""
        means = {
            (case, each): fmean(map(number, results.find(case, each).records))
            for case in names
            for each in ("spectrakan", model)
        }
        ratios = [means[case, model] / means[case, "spectrakan"] for case in names]
        return min(ratios), max(ratios)

    low, high = over("fno", lambda record: record["metrics"]["rmse"])
    assert f"FNO's error is {low:.1f} to {high:.1f} times SpectraKAN's" in text
    low, high = over("ffno", lambda record: record["train_seconds"])
    assert f"F-FNO trains {low:.1f} to {high:.1f} times as long as SpectraKAN" in text


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
