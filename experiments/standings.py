"""Tables with models down, columns across and SpectraKAN against the best baseline underneath."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.scales import BASELINES, PEERS, TRIVIAL
from experiments.summaries import Reading, Result, Results, beyond_spread, metric_of, ratio, row_name
from spectrakan.report.table import Column, Row, Score, Table

OURS = "spectrakan"


@dataclass(frozen=True)
class Contest:
    """One column: a case, what is read from its records, and the paper's values by model."""

    title: str
    case: str
    reading: Reading
    paper: dict[str, float]

    @classmethod
    def of_metric(cls, case: str, metric: str, paper: dict[str, float], title: str = "") -> Contest:
        """A column of a whole-set metric."""
        return cls(title or case, case, metric_of(metric), paper)


@dataclass(frozen=True)
class Verdict:
    """The result of SpectraKAN in a contest."""

    contest: Contest
    ours: Score
    baseline: str
    best: Score
    ratio: float

    @property
    def won(self) -> bool:
        """Whether SpectraKAN's error is the smallest."""
        return self.ratio < 1

    def sentence(self) -> str:
        """The result in words, beside the paper's."""
        theirs = paper_ratio(self.contest.paper)
        claimed = "the paper has no number" if theirs is None else f"{theirs:.3f} in the paper"
        name = row_name(self.baseline)
        standing = f"{self.contest.title}: SpectraKAN / best baseline ({name}) = {self.ratio:.3f} ({claimed})"
        clear = beyond_spread(self.ours, self.best)
        if self.won:
            return standing + (", ahead." if clear else ", ahead, but within the spread of seeds.")
        if theirs is not None and theirs < 1:
            return (
                standing
                + f". The paper's claim to be ahead does not hold in our hands: {name} is better"
                + ("." if clear else ", by less than the spread of seeds.")
            )
        return standing + f"; {name} is better."


def verdict(results: Results, contest: Contest) -> Verdict | None:
    """SpectraKAN's default against the best of the baselines and their peers."""
    mine = results.find(contest.case, OURS)
    baseline = results.best_of(contest.case, (*BASELINES, *PEERS), contest.reading)
    if mine is None or baseline is None:
        return None
    ours = mine.score(contest.reading)
    compared = ratio(ours, baseline[1])
    return None if compared is None else Verdict(contest, ours, baseline[0], baseline[1], compared)


def standings(title: str, results: Results, contests: Sequence[Contest]) -> Table:
    """All models in all contests, with rows for ratio and improvement; trivial baselines are not marked as best."""
    names = [(model, "default") for model in results.models() if model not in TRIVIAL]
    if any(results.find(contest.case, OURS, "paper") for contest in contests):
        names.append((OURS, "paper"))
    rows = [_row(results, contests, model, variant, ranked=True) for model, variant in names]
    rows += [
        _row(results, contests, model, "default", ranked=False) for model in results.models() if model in TRIVIAL
    ]
    verdicts = [verdict(results, contest) for contest in contests]
    rows.append(_ratios(contests, verdicts))
    rows.append(_improvements(contests, verdicts))
    notes = (
        "Mean ± standard deviation over seeds where there are several; in brackets the paper's value.",
        *(found.sentence() for found in verdicts if found is not None),
    )
    return Table(title, tuple(Column(contest.title) for contest in contests), tuple(rows), _listed(notes))


def _row(results: Results, contests: Sequence[Contest], model: str, variant: str, *, ranked: bool) -> Row:
    cells: list[Score | str] = []
    for contest in contests:
        result: Result | None = results.find(contest.case, model, variant)
        paper = contest.paper.get(model) if variant == "default" else None
        cells.append(Score(None, paper=paper) if result is None else result.score(contest.reading, paper))
    return Row(row_name(model, variant), tuple(cells), ranked)


def _ratios(contests: Sequence[Contest], verdicts: Sequence[Verdict | None]) -> Row:
    cells = tuple(
        Score(None if found is None else found.ratio, paper=paper_ratio(contest.paper))
        for contest, found in zip(contests, verdicts, strict=True)
    )
    return Row("SpectraKAN / best baseline", cells, ranked=False)


def _improvements(contests: Sequence[Contest], verdicts: Sequence[Verdict | None]) -> Row:
    cells = []
    for contest, found in zip(contests, verdicts, strict=True):
        theirs = paper_ratio(contest.paper)
        ours = "–" if found is None else f"{100 * (1 - found.ratio):.1f} %"
        best = best_baseline(contest.paper)
        cells.append(ours if theirs is None or best is None else f"{ours} ({100 * (1 - theirs):.1f} %)")
    return Row("improvement", tuple(cells), ranked=False)


def _listed(notes: Sequence[str]) -> tuple[str, ...]:
    first, *others = notes
    return (first, "\n".join(f"- {note}" for note in others)) if others else (first,)


def best_baseline(values: dict[str, float]) -> tuple[str, float] | None:
    """The strongest method beside SpectraKAN."""
    others = {method: value for method, value in values.items() if method != OURS}
    return min(others.items(), key=lambda item: item[1]) if others else None


def paper_ratio(values: dict[str, float]) -> float | None:
    """SpectraKAN's value over the best baseline's: below one it wins.

    >>> paper_ratio({"spectrakan": 1.0, "fno": 4.0, "ffno": 2.0})
    0.5
    """
    best = best_baseline(values)
    return None if best is None or OURS not in values else values[OURS] / best[1]
