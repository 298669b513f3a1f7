"""What SpectraKAN had to show at this scale, and whether it did: each line follows from the records."""

from __future__ import annotations

from dataclasses import dataclass

from spectrakan.experiments import appendix, droplet, main
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.costs import seconds
from spectrakan.experiments.scales import scale_named
from spectrakan.experiments.standings import Contest, Verdict, verdict
from spectrakan.experiments.step_times import step_ratio
from spectrakan.experiments.summaries import Results, beyond_spread, metric_of
from spectrakan.experiments.super_resolution import CASE as WAVES
from spectrakan.experiments.super_resolution import at_resolution
from spectrakan.report.published import paper_cell, paper_ratio

GROWTH_LIMITS = {32: 4.5, 128: 2.0}
"""How many times the error may grow from 64² to another resolution, as in the paper."""


@dataclass(frozen=True)
class Bar:
    """Something that had to be shown, what came out, and whether it was reached; None: not run yet."""

    name: str
    found: str
    reached: bool | None

    def __str__(self) -> str:
        told = {True: "reached", False: "not reached", None: "not run"}[self.reached]
        return f"{self.name}: {self.found} – **{told}**"


def bars(archive: Archive) -> list[Bar]:
    """All bars of the scale."""
    results = Results.of(archive, main.TABLE)
    found = [verdict(results, contest) for contest in contests(archive)]
    verdicts = [each for each in found if each is not None]
    return [
        _wins(verdicts, len(main.main_cases(scale_named(archive.scale)))),
        _never_third(results, verdicts),
        *(_ratio(each) for each in [*verdicts, *droplet.verdicts(archive)] if paper_ratio(each.contest.paper)),
        *_baseline_is_strong(results),
        *_seconds(results, archive),
        *_growth(results, archive),
        _appendix(archive),
    ]


def contests(archive: Archive) -> list[Contest]:
    """The columns of the main table."""
    cases = main.main_cases(scale_named(archive.scale))
    return [Contest.of_metric(case, "rmse", paper_cell("main", case, "rmse")) for case in cases]


def _wins(verdicts: list[Verdict], cases: int) -> Bar:
    clear = [each.contest.case for each in verdicts if each.won and beyond_spread(each.ours, each.best)]
    reached = len(clear) >= 4 if len(verdicts) == cases == 6 else None
    return Bar("Lowest RMSE beyond the spread of seeds on at least 4 of 6 tasks", ", ".join(clear) or "none", reached)


def _never_third(results: Results, verdicts: list[Verdict]) -> Bar:
    third = []
    for each in verdicts:
        scores = [result.metric("rmse").value for model in results.models(each.contest.case)
                  if model not in ("spectrakan", "persistence", "climatology", "ridge")
                  and (result := results.find(each.contest.case, model))]  # fmt: skip
        better = sum(
            score is not None and each.ours.value is not None and score < each.ours.value for score in scores
        )
        if better > 1:
            third.append(f"{each.contest.case} (place {better + 1})")
    return Bar(
        "Never worse than second", ", ".join(third) or "always first or second", not third if verdicts else None
    )


def _ratio(found: Verdict) -> Bar:
    goal = paper_ratio(found.contest.paper) or 1.0
    where = (
        found.contest.case
        if found.contest.title == found.contest.case
        else (f"{found.contest.case}, {found.contest.title}")
    )
    name = f"Goal: ratio to the best baseline on {where} at most the paper's {goal:.3f}"
    return Bar(name, f"{found.ratio:.3f}", found.ratio <= goal)


def _baseline_is_strong(results: Results) -> list[Bar]:
    made = []
    for case in results.cases():
        floors = ["ridge"] if case == "climate2d" else ["persistence", "climatology"]
        floor = results.best_of(case, floors, metric_of("rmse"))
        fno = results.find(case, "fno")
        if floor is None or fno is None or floor[1].value is None:
            continue
        limit = 1.0 if case == "climate2d" else 0.5
        share = (fno.metric("rmse").value or float("inf")) / floor[1].value
        made.append(Bar(f"FNO's RMSE on {case} at most {limit:g} of {floor[0]}'s", f"{share:.3f}", share <= limit))
    return made


def _seconds(results: Results, archive: Archive) -> list[Bar]:
    """By steps taken in turns where they were measured, else by the CPU seconds of the records."""
    made = []
    for case in results.cases():
        ours, theirs = (seconds(results.find(case, model)).value for model in ("spectrakan", "fno"))
        if ours is None or not theirs:
            continue
        told, share = f"{ours / theirs:.2f}", ours / theirs
        if (measured := step_ratio(archive, case, "spectrakan")) is not None:
            told, share = f"{measured:.2f} by steps taken in turns ({told} by the seconds of the records)", measured
        made.append(Bar(f"Training seconds on {case} at most 1.5 times FNO's", told, share <= 1.5))
    return made


def _growth(results: Results, archive: Archive) -> list[Bar]:
    result = results.find(WAVES, "spectrakan")
    case = scale_named(archive.scale).cases.get(WAVES)
    if result is None or case is None or case.resolution != 64:
        return []
    here, made = result.metric("rmse").value, []
    for cells, limit in GROWTH_LIMITS.items():
        there = result.score(at_resolution(cells)).value
        grown = None if there is None or not here else there / here
        text = "–" if grown is None else f"{grown:.2f}-fold"
        name = f"Error of shallow water at {cells}² at most {limit:g}-fold that at 64²"
        made.append(Bar(name, text, None if grown is None else grown <= limit))
    return made


def _appendix(archive: Archive) -> Bar:
    found = appendix.verdicts(archive)
    won = sum(each.won for each in found)
    return Bar(
        "At least 20 of the 28 appendix columns won",
        f"{won} of {len(found)}",
        won >= 20 if len(found) == 28 else None,
    )
