"""The seven further metrics of the appendix: made from the cells of the main table."""

from __future__ import annotations

from spectrakan.experiments.archive import Archive
from spectrakan.experiments.main import TABLE
from spectrakan.experiments.scales import FLOORS
from spectrakan.experiments.standings import Contest, Verdict, standings, verdict
from spectrakan.experiments.summaries import Results
from spectrakan.report.published import APPENDIX_METRICS, appendix_wins, paper_cell
from spectrakan.report.table import Table

CASES = ("cns1d", "diffusion_reaction1d", "darcy2d", "shallow_water2d")


def tables(archive: Archive) -> list[Table]:
    """One table a metric."""
    results = Results.of(archive, TABLE)
    return [
        standings(f"Appendix: {metric}", results, contests, FLOORS)
        for metric in APPENDIX_METRICS
        if (contests := _contests(results, metric))
    ]


def verdicts(archive: Archive) -> list[Verdict]:
    """How SpectraKAN stands in each column of the appendix that has been run."""
    results = Results.of(archive, TABLE)
    found = [verdict(results, contest) for metric in APPENDIX_METRICS for contest in _contests(results, metric)]
    return [each for each in found if each is not None]


def summary(archive: Archive) -> str | None:
    """How many columns SpectraKAN wins, ours and the paper's."""
    found = verdicts(archive)
    if not found:
        return None
    wins, cells = appendix_wins()
    lost = [f"{each.contest.title} ({each.rival})" for each in found if not each.won]
    where = f" Not won: {', '.join(lost)}." if lost else ""
    return (
        f"SpectraKAN has the smallest error in {len(found) - len(lost)} of {len(found)} columns of the appendix; "
        f"by the paper's own numbers in {wins} of {cells}.{where}"
    )


def _contests(results: Results, metric: str) -> list[Contest]:
    present = results.cases()
    return [
        Contest.of_metric(case, metric, paper_cell("appendix", case, metric), f"{case} {metric}")
        for case in CASES
        if case in present
    ]
