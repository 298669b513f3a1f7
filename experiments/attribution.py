"""What each part of SpectraKAN is worth, and what its summary is worth to F-FNO; and the table of families.

Every row is trained like the whole model: same steps, same stages. Rows that a problem does not have (a coarse branch
or squeeze-excitation that its default lacks) are the part added instead of taken away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.ablation import Variant
from experiments.archive import Archive
from experiments.campaign import Stage
from experiments.cells import Cell, as_overrides
from experiments.comparison import LEAST_SEEDS, Comparison, compare
from experiments.families.catalog import FAMILIES, KINDS, family_of
from experiments.scales import Scale, case_named
from experiments.summaries import Reading, Result, Results, metric_of
from experiments.summarised_ffno import FACTORIES
from spectrakan.report.table import Column, Row, Score, Table

ATTRIBUTION, PARAMETRIC = "attribution", "families"
NONLINEAR = ("cns1d", "droplet2d", "burgers1d_given", "burgers1d_hidden")
STEADY = ("darcy2d", "climate2d")
STEADY_SEEDS = 3
FFNO_RATE = 0.01
"""F-FNO's learning rate in the presets."""

ROWS: dict[str, Variant] = {
    "whole": Variant("SpectraKAN"),
    "no_token": Variant("no token", {"model.token": "none"}),
    "no_attention": Variant("token without attention", {"model.use_gml": False}),
    "readout": Variant("token in the readout only", {"model.conditioning": "readout", "model.pool": "center"}),
    "film": Variant("token without transport", {"model.conditioning": "film"}),
    "mlp": Variant("MLP in place of the KAN", {"model.token": "mlp"}),
    "no_gates": Variant("no gates", {"model.gates": False}),
    "coarse": Variant("with a coarse branch", {"model.coarse_num_layers": 4}),
    "no_squeeze_excite": Variant("no squeeze-excitation", {"model.squeeze_excite": "none"}),
    "ffno": Variant("F-FNO", model="ffno"),
    "ffno_channels": Variant("F-FNO, summary as channels", model="ffno_channels"),
    "ffno_film": Variant("F-FNO, FiLM by the summary", model="ffno_film"),
    "paper": Variant("the paper's letter", model="spectrakan"),
    "paper_no_token": Variant("the paper's letter, no token", {"model.token": "none"}, model="spectrakan"),
    "paper_no_gml": Variant("the paper's letter, KAN without GML", {"model.use_gml": False}, model="spectrakan"),
}
"""Rows of the attribution table by name."""

COMPETITORS: dict[str, Variant] = {
    name: ROWS[name] for name in ("whole", "no_token", "ffno", "ffno_channels", "ffno_film", "paper")
} | {"fno": Variant("FNO", model="fno")}
"""Rows of the table of families."""
UNCONDITIONED = ("no_token", "ffno", "fno")
"""Rows that receive parameters as channels, and no summary."""
DECISIVE = ("whole", "no_token", "ffno")
"""Rows that have all seeds on every family; F-FNO with a summary has them on the nonlinear ones, others have one."""

TAILS = {"median": "median", "percentile_99": "99th percentile", "worst": "largest"}
OVERVIEW = ("whole", "no_token", "ffno", "ffno_channels", "ffno_film", "fno", "paper")
"""Columns of the table that README shows, as far as there are records."""
OVERVIEW_NOTE = (
    "Means over seeds, their number in brackets; the ratio of geometric means is to the best unconditioned model, "
    "named in brackets, with p by Welch's test on log errors and Holm's correction over the cases."
)
OUTSIDE_NOTE = (
    "One parameter lies outside its range of training, by at most 25 % of the range's width, the others within; all "
    "ends of all ranges count alike."
)
STEP_NOTE = (
    "Every second frame is seen and predicted. No operator receives the time step: with parameters given, nothing "
    "shows the longer step, and every model fails; where parameters are hidden, the frames of the history show it."
)


def stages(scale: Scale) -> list[Stage]:
    """All rows on all cases, seed by seed, so that early seeds of all rows come first."""
    return [lambda archive: _cells(scale, ROWS, (*NONLINEAR, *STEADY))]


def family_stages(scale: Scale) -> list[Stage]:
    """All competitors on all families."""
    return [lambda archive: _cells(scale, COMPETITORS, family_cases())]


def family_competitors() -> list[tuple[str, str]]:
    """Models of the families, as (model, variant)."""
    return list(dict.fromkeys((row.model, _variant(name, row)) for name, row in COMPETITORS.items()))


def family_cases() -> tuple[str, ...]:
    """The cases of the families, such as `burgers1d_given`."""
    return tuple(f"{name}_{kind}" for name in FAMILIES for kind in KINDS)


def _cells(scale: Scale, rows: Mapping[str, Variant], cases: Sequence[str]) -> list[Cell]:
    """Every row on every case; a row that the table of families has too is its cell, trained once."""
    return [
        Cell(
            PARAMETRIC if name in COMPETITORS and case in family_cases() else ATTRIBUTION,
            scale.name, case, row.model, _variant(name, row), seed,
            as_overrides({**_rate(row.model, case), **row.settings}), name,
        )
        for seed in scale.seeds
        for case in cases
        if case in scale.cases
        for name, row in rows.items()
        if seed in _seeds(scale, case, name)
    ]  # fmt: skip


def _seeds(scale: Scale, case: str, name: str) -> Sequence[int]:
    """The seeds of a row on a case."""
    if case in STEADY:
        return scale.seeds[:STEADY_SEEDS]
    family = family_of(case)
    summarised = ROWS[name].model in FACTORIES if name in ROWS else False
    compared = summarised and family is not None and family.nonlinear
    all_seeds = name in DECISIVE or compared or (case in NONLINEAR and name in ROWS)
    return scale.seeds if all_seeds else scale.seeds[:1]


def _rate(model: str, case: str) -> dict[str, float]:
    """The learning rate of an F-FNO with a summary, which has no preset: its own on the case, else F-FNO's."""
    if model not in FACTORIES:
        return {}
    rates = case_named(case).rates
    return {"training.learning_rate": rates.get(model, rates.get("ffno", FFNO_RATE))}


def _variant(name: str, row: Variant) -> str:
    """The named settings that a row starts from."""
    if row.model != "spectrakan":
        return "default"
    return "paper" if name.startswith("paper") else "default"


def tables(archive: Archive) -> list[Table]:
    """Errors of the rows on each case with a record, and of families the verdict against unconditioned models."""
    records = archive.records(PARAMETRIC)
    shared = [record for record in records if record["details"]["case"] in NONLINEAR]
    families, parts = Results(records), Results([*archive.records(ATTRIBUTION), *shared])
    made = [
        _table("Parametric families: RMSE of rollouts", families, COMPETITORS),
        *(
            _table(f"Parametric families: {words} of single samples' RMSE", families, COMPETITORS, f"tails.{name}")
            for name, words in TAILS.items()
        ),
        _table("Parameters outside the range of training: RMSE", families, COMPETITORS, "outside.rmse", OUTSIDE_NOTE),
        _table("Twice the time step of training: RMSE", families, COMPETITORS, "other_step.rmse", STEP_NOTE),
        _table("What each part is worth: RMSE", parts, ROWS),
    ]
    return [table for table in made if table is not None]


def _table(title: str, results: Results, rows: Mapping[str, Variant], part: str = "", note: str = "") -> Table | None:
    """A table of the test's RMSE, or of a number that the details hold, such as `outside.rmse`."""
    group, _, name = part.partition(".")
    reading = _detail(group, name) if part else metric_of("rmse")
    cases = [case for case in results.cases() if not part or group in results.first(case)["details"]]
    if not cases:
        return None
    lines = []
    for name, row in rows.items():
        found = _by_case(results, name, row, cases)
        lines.append(Row(row.label, tuple(Score(None) if each is None else each.score(reading) for each in found)))
    said = verdicts(results, rows, reading)
    notes = [*filter(None, [note]), *(f"{case}: {said[case]}" for case in cases if case in said)]
    return Table(title, tuple(Column(case) for case in cases), tuple(lines), tuple(notes))


def _by_case(results: Results, name: str, row: Variant, cases: Sequence[str] | None = None) -> list[Result | None]:
    """The results of a row on each case."""
    return [results.find(case, row.model, _variant(name, row), name) for case in (cases or results.cases())]


def _detail(group: str, name: str) -> Reading:
    return lambda record: record["details"].get(group, {}).get(name)


def verdicts(results: Results, rows: Mapping[str, Variant], reading: Reading = metric_of("rmse")) -> dict[str, str]:
    """The whole model against the best unconditioned one, in words."""
    return {
        case: f"{found.ratio:.3f} of {rows[rival].label} (p = {found.corrected:.3f}): {found.verdict}"
        for case, (rival, found) in against_unconditioned(results, rows, reading).items()
    }


def against_unconditioned(
    results: Results, rows: Mapping[str, Variant], reading: Reading = metric_of("rmse")
) -> dict[str, tuple[str, Comparison]]:
    """The best unconditioned row of each case that has several seeds of both, and the comparison with it."""
    pairs, names = {}, {}
    for case in results.cases():
        errors = {}
        for name, row in rows.items():
            found = results.find(case, row.model, _variant(name, row), name)
            values = [] if found is None else [reading(record) for record in found.records]
            finite = [value for value in values if value is not None]
            if len(finite) >= LEAST_SEEDS and len(finite) == len(values):
                errors[name] = finite
        rivals = {name: errors[name] for name in UNCONDITIONED if name in errors}
        if "whole" in errors and rivals:
            names[case] = min(rivals, key=lambda name: sum(rivals[name]) / len(rivals[name]))
            pairs[case] = (errors["whole"], rivals[names[case]])
    return {case: (names[case], found) for case, found in compare(pairs).items()}


def overview(archive: Archive) -> Table:
    """What conditioning is worth on families, a case a row: the table that README and findings show."""
    results = Results.of(archive, PARAMETRIC)
    found = against_unconditioned(results, COMPETITORS)
    all_rows = {name: _by_case(results, name, COMPETITORS[name]) for name in OVERVIEW}
    shown = {name: each for name, each in all_rows.items() if any(each)}
    rows = []
    for number, case in enumerate(results.cases()):
        cells: list[Score | str] = []
        for each in shown.values():
            result = each[number]
            value = None if result is None else result.metric("rmse").value
            cells.append("–" if result is None or value is None else f"{value:.3g} ({len(result.records)})")
        if case in found:
            rival, comparison = found[case]
            p = "< 0.001" if comparison.corrected < 0.001 else f"{comparison.corrected:.3f}"
            cells += [f"{comparison.ratio:.2f} ({COMPETITORS[rival].label})", p, comparison.verdict]
        rows.append(Row(case, (*cells, *["–"] * (len(shown) + 3 - len(cells))), ranked=False))
    titles = (*(COMPETITORS[name].label for name in shown), "ratio", "p", "verdict")
    columns = tuple(Column(title, "neither") for title in titles)
    return Table(
        "What conditioning is worth: test RMSE of rollouts", columns, tuple(rows), (OVERVIEW_NOTE,), corner="case"
    )
