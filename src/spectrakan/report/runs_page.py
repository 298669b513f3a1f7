"""One HTML page about any finished runs: scores, curves, provenance and settings, by problem."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spectrakan.errors import ConfigError
from spectrakan.report.figures import error_against_time, figure_bytes, loss_curves
from spectrakan.report.page import Element, Origin, Paragraph, Picture, Section, page
from spectrakan.report.published import paper_score
from spectrakan.report.table import Column, Row, Score, Table

Record = Mapping[str, Any]
LARGER_IS_BETTER = ("anomaly_r2",)
PAPER_NOTE = "In brackets: the paper's value for that model, of its own data, sizes and training."
DATA_NOTE = "These runs have different data, so their scores are not of the same test samples."
CURVE = "relative_l2"


@dataclass(frozen=True)
class RunReport:
    """What is known of one run: its record, the lines of its log, and its later evaluations by name."""

    name: str
    record: Record
    log: Sequence[Record] = ()
    evaluations: Mapping[str, Record] = field(default_factory=dict)


def runs_page(runs: Sequence[RunReport], command: str = "") -> str:
    """The page as text, one section a problem; it needs no other file. `command` is what makes it again.

    The paper's numbers appear beside its own six tasks only.
    """
    if not runs:
        raise ConfigError("a report needs at least one finished run")
    names = [run.name for run in runs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"runs need names of their own, these come twice: {', '.join(sorted(twice))}")
    problems = list(dict.fromkeys(str(run.record["task"]) for run in runs))
    groups = [[run for run in runs if run.record["task"] == problem] for problem in problems]
    lead = [Paragraph("Scores are of test samples. A click on the name of a column sorts the table by it.")]
    title = (
        f"{problems[0]}: {len(runs)} runs" if len(problems) == 1 else f"{len(runs)} runs on {len(problems)} problems"
    )
    sections = [
        Section(
            problem,
            [
                *_tables(problem, group),
                *_pictures(problem, group),
                origin_of([run.record for run in group], command),
                *(Origin(f"Settings of {run.name}", _flat(run.record["config"] or {})) for run in group),
            ],
        )
        for problem, group in zip(problems, groups, strict=True)
    ]
    return page(title, lead, sections, "Made by spectrakan.")


def _tables(problem: str, runs: Sequence[RunReport]) -> list[Element]:
    """Scores of the runs, by field where there are several, and of their evaluations."""
    made: list[Element] = [scores_table(f"{problem}: test scores", {run.name: run.record for run in runs})]
    fields = list(dict.fromkeys(name for run in runs for name in run.record["metrics_per_field"] or {}))
    if len(fields) > 1:
        rows = []
        for run in runs:
            scores = run.record["metrics_per_field"] or {}
            rows.append(Row(run.name, tuple(Score((scores.get(name) or {}).get(CURVE)) for name in fields)))
        title = f"{problem}: relative L2 by field"
        made.append(Table(title, tuple(map(Column, fields)), tuple(rows), corner="run"))
    later = {
        f"{run.name}: {name}": {"task": problem, **found} for run in runs for name, found in run.evaluations.items()
    }
    return [*made, scores_table(f"{problem}: later evaluations", later)] if later else made


def scores_table(title: str, records: Mapping[str, Record]) -> Table:
    """Records of one problem in rows; model, parameters, seconds and every metric that one of them has in columns.

    The paper's values stand beside the scores where it has the task, the metric and the model. A note says so, and
    another one where the records are of different data.
    """
    metrics = dict.fromkeys(name for record in records.values() for name in record["metrics"] or {})
    ordered = sorted(metrics, key=lambda name: name != CURVE)
    columns = [Column(name, "neither") for name in ("model", "parameters", "seconds")]
    columns += [Column(name, "larger" if name in LARGER_IS_BETTER else "smaller") for name in ordered]
    rows, in_paper = [], False
    for name, record in records.items():
        sizes = tuple(Score(record.get(key)) for key in ("parameters", "train_seconds"))
        task, model = str(record["task"]), str(record["model"])
        published = record.get("variant") in (None, "default", "paper")
        paper = {key: paper_score(task, key, model) if published else None for key in ordered}
        scores = [Score((record["metrics"] or {}).get(key), paper=paper[key]) for key in ordered]
        in_paper = in_paper or any(score.paper is not None for score in scores)
        rows.append(Row(name, (_model(record), *sizes, *scores)))
    data = {(record.get("provenance") or {}).get("data_sha256") for record in records.values()}
    notes = [PAPER_NOTE] * in_paper + [DATA_NOTE] * (len(data) > 1)
    return Table(title, tuple(columns), tuple(rows), tuple(notes), corner="run")


def _model(record: Record) -> str:
    variant = record.get("variant")
    return str(record["model"]) if variant in (None, "default") else f"{record['model']} ({variant})"


def _pictures(problem: str, runs: Sequence[RunReport]) -> list[Element]:
    """Losses against epochs, and errors against time for each set of times."""
    made: list[Element] = []
    models = [_model(run.record) for run in runs]
    # A line is named by its model where it is the only one of its kind, else also by its run.
    labelled = {
        model if models.count(model) == 1 else f"{run.record['model']} ({run.name})": run
        for model, run in zip(models, runs, strict=True)
    }
    logs = {
        label: run.log for label, run in labelled.items() if any(line.get("event") == "epoch" for line in run.log)
    }
    if logs:
        caption = f"{problem}: training loss and validation error by epoch; a point marks the best epoch."
        made.append(Picture(figure_bytes(loss_curves(logs)), caption, f"{caption} Runs: {', '.join(logs)}."))
    by_times: dict[tuple[float, ...], dict[str, list[float]]] = {}
    for label, run in labelled.items():
        for times, errors in _growth(run).items():
            by_times.setdefault(times, {})[label] = errors
    for times, curves in by_times.items():
        caption = f"{problem}: relative L2 error of the rollout from t = {times[0]:g} to {times[-1]:g}."
        ends = ", ".join(f"{label} {errors[-1]:.3g}" for label, errors in curves.items())
        drawn = figure_bytes(error_against_time(times, curves, "relative L2"))
        made.append(Picture(drawn, caption, f"{caption} At the end: {ends}."))
    return made


def _growth(run: RunReport) -> dict[tuple[float, ...], list[float]]:
    """Times and errors of the rollout, from the record and then from evaluations, each set of times once."""
    found: dict[tuple[float, ...], list[float]] = {}
    for source in (run.record, run.record.get("details") or {}, *run.evaluations.values()):
        times, errors = source.get("times") or (), (source.get("metrics_per_frame") or {}).get(CURVE) or ()
        if len(times) > 1 and len(times) == len(errors):
            numbers = [math.nan if value is None else float(value) for value in errors]
            found.setdefault(tuple(float(time) for time in times), numbers)
    return found


def origin_of(records: Sequence[Record], command: str) -> Origin:
    """The command that repeats them, versions, commits, machine, seeds and hashes of the data.

    What differs between records is listed, so that a table mixed from two versions shows it.
    """
    sources = [record["provenance"] or {} for record in records]
    versions: dict[str, dict[str, None]] = {}
    hashes: dict[str, dict[str, None]] = {}
    for record, source in zip(records, sources, strict=True):
        for name, version in source.get("versions", {}).items():
            versions.setdefault(name, {})[str(version)] = None
        details = record.get("details") or {}
        case = details.get("case") or record["task"]
        data = {"training data": source.get("data_sha256"), "test data": details.get("test_sha256")}
        for kind, sha256 in data.items():
            if sha256:
                hashes.setdefault(f"{kind}, {case}", {})[str(sha256)] = None
    entries = [
        ("records", str(len(records))),
        ("seeds", _joined(sorted({record["seed"] for record in records}, key=str))),
        ("versions", _joined(f"{name} {' and '.join(found)}" for name, found in versions.items())),
        ("commit", _joined(str(source.get("commit") or "not known") for source in sources)),
        ("machine", _joined(_machine(source) for source in sources)),
        *((name, _joined(found)) for name, found in hashes.items()),
    ]
    return Origin(f"Where these numbers come from: {len(records)} records", entries, (command,) if command else ())


def _machine(source: Record) -> str:
    threads = f"{source['threads']} threads" if source.get("threads") else ""
    return " ".join(filter(None, (source.get("system", "not known"), source.get("device", ""), threads)))


def _joined(parts: Iterable[Any]) -> str:
    """The different ones among the parts."""
    return ", ".join(dict.fromkeys(map(str, parts))) or "none"


def _flat(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Settings as pairs of a dotted name and a text.

    >>> _flat({"task": "heat", "model": {"name": "fno", "width": 8}})
    [('task', 'heat'), ('model.name', 'fno'), ('model.width', '8')]
    """
    pairs: list[tuple[str, str]] = []
    for name, value in config.items():
        nested = isinstance(value, Mapping) and value
        pairs += _flat(value, f"{prefix}{name}.") if nested else [(f"{prefix}{name}", str(value))]
    return pairs
