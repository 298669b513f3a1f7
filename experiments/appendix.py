"""The seven further metrics of the appendix, from the cells of the main table; and what the paper says of its own."""

from __future__ import annotations

from experiments.archive import Archive
from experiments.main import TABLE
from experiments.standings import OURS, Contest, Verdict, best_baseline, paper_ratio, standings, verdict
from experiments.summaries import Results
from spectrakan.report.published import paper_cell, published
from spectrakan.report.table import Table

APPENDIX_METRICS = ("nrmse", "max_error", "crmse", "brmse", "frmse_low", "frmse_mid", "frmse_high")
CASES = ("cns1d", "diffusion_reaction1d", "darcy2d", "shallow_water2d")


def tables(archive: Archive) -> list[Table]:
    """One table a metric."""
    results = Results.of(archive, TABLE)
    return [
        standings(f"Appendix: {metric}", results, contests)
        for metric in APPENDIX_METRICS
        if (contests := _contests(results, metric))
    ]


def verdicts(archive: Archive) -> list[Verdict]:
    """The result of SpectraKAN in each column of the appendix that has been run."""
    results = Results.of(archive, TABLE)
    found = [verdict(results, contest) for metric in APPENDIX_METRICS for contest in _contests(results, metric)]
    return [each for each in found if each is not None]


def summary(archive: Archive) -> str | None:
    """How many columns SpectraKAN wins, ours and the paper's."""
    found = verdicts(archive)
    if not found:
        return None
    wins, cells = appendix_wins()
    lost = [f"{each.contest.title} ({each.baseline})" for each in found if not each.won]
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


def appendix_wins() -> tuple[int, int]:
    """In how many columns of the appendix SpectraKAN has the paper's smallest value, and of how many.

    >>> appendix_wins()
    (20, 28)
    """
    tasks = sorted({entry.task for entry in published() if entry.table == "appendix"})
    ratios = [paper_ratio(paper_cell("appendix", task, metric)) for task in tasks for metric in APPENDIX_METRICS]
    known = [ratio for ratio in ratios if ratio is not None]
    return sum(ratio < 1 for ratio in known), len(known)


def paper_slips() -> list[str]:
    """Where the paper's words and its own numbers disagree."""
    cns, reaction = (paper_cell("main", task, "rmse") for task in ("cns1d", "diffusion_reaction1d"))
    wins, cells = appendix_wins()
    second = best_baseline(reaction)
    name, value = second if second is not None else ("", 1.0)
    gain = 100 * (1 - cns[OURS] / cns["ffno"])
    flow = (
        f"The abstract and the main table give an improvement of 49 % on 1D flow, the text 50.7 %; "
        f"{cns['ffno']:g} against {cns[OURS]:g} is {gain:.1f} %."
    )
    over = (
        f"On diffusion-reaction the improvement of 42 % is taken over Transolver's {reaction['transolver']:g}, "
        f"while the best baseline of the table is {name} with {value:g}, which makes it "
        f"{100 * (1 - reaction[OURS] / value):.1f} %."
    )
    appendix = f"By its own numbers SpectraKAN wins {wins} of the {cells} columns of the appendix, not all of them."
    return [flow, over, appendix]
