"""Figures that need records alone: errors against time, seconds and samples, and long rollouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from matplotlib.figure import Figure

from experiments import data_efficiency, main
from experiments.archive import Archive
from experiments.gallery import Plate
from experiments.paper_curves import Spent, accuracy_against_seconds, error_against_samples, stability_curves
from experiments.scales import TRIVIAL
from experiments.summaries import Result, Results
from spectrakan.report.figures import error_against_time
from spectrakan.report.figures.appearance import LOOKS, look_of

TIME, STABILITY = "Error against time", "Five-fold horizon"
COST, DATA = "Accuracy against training seconds", "Data efficiency"
"""Sections of a report that have such figures."""

Drawn = Iterator[tuple[Plate, Figure]]
Curve = Callable[[dict[str, Any]], tuple[list[float], list[float]] | None]
"""Times and errors of a record, if it has them."""


def growth_figures(archive: Archive) -> Drawn:
    """Relative L2 error at each predicted frame, one figure a task in time."""
    results = Results.of(archive, main.TABLE)
    for case in results.cases():
        times, curves = _curves(results, case, _per_frame)
        if len(times) > 1:
            caption = (
                f"{case}: relative L2 error of the rollout at each time; bands go from the best to the worst seed."
            )
            figure = error_against_time(times, curves, "relative L2 error")
            yield Plate(f"{case}-time", TIME, caption, f"{caption} {_ends(curves)}"), figure


def stability_figures(archive: Archive) -> Drawn:
    """Errors along rollouts of five horizons, one figure a task in time."""
    results = Results.of(archive, main.TABLE)
    for case in results.cases():
        times, curves = _curves(results, case, _long)
        known = [result for model in LOOKS if (result := results.find(case, model)) and _long(result.records[0])]
        if len(times) > 1 and known:
            scored = known[0].records[0]["horizon"] or 1
            caption = (
                f"{case}: relative L2 error, median over samples, along rollouts of five horizons; the grey part is "
                "what the main table scores. A cross marks where a model stops giving finite numbers."
            )
            figure = stability_curves(times, curves, times[min(scored, len(times)) - 1], "relative L2 error")
            yield Plate(f"{case}-stability", STABILITY, caption, f"{caption} {_ends(curves)}"), figure


def cost_figures(archive: Archive) -> Drawn:
    """RMSE against seconds of training, one plot a task."""
    results = Results.of(archive, main.TABLE)
    runs = {case: found for case in results.cases() if (found := _spent(results, case))}
    if runs:
        caption = (
            "RMSE against CPU seconds of training, mean over seeds; bars go from the best to the worst seed. The "
            "stairs join the models that no other beats in both."
        )
        numbers = "; ".join(
            f"{case}: " + ", ".join(f"{look_of(name).label} {spent.middle[1]:.3g} after {spent.middle[0]:.0f} s"
                                    for name, spent in models.items())
            for case, models in runs.items()
        )  # fmt: skip
        yield Plate("cost", COST, caption, f"{caption} {numbers}."), accuracy_against_seconds(runs, "RMSE")


def efficiency_figures(archive: Archive) -> Drawn:
    """RMSE against the number of samples."""
    for case in data_efficiency.cases(archive):
        counts, found = data_efficiency.results_by_count(archive, case)
        curves = {model: [_mean(result) for result in found[model]] for model in LOOKS if model in found}
        if curves and len(counts) > 1:
            caption = (
                f"{case}: RMSE against the number of samples, each trained for as many steps; both axes logarithmic."
            )
            figure = error_against_samples({case: counts}, {case: curves}, "RMSE")
            yield Plate(f"{case}-data-efficiency", DATA, caption, f"{caption} {_ends(curves)}"), figure


def _curves(results: Results, case: str, curve: Curve) -> tuple[list[float], dict[str, list[list[float]]]]:
    """Times, and the errors of each model's seeds at them; seeds with other times are left out."""
    times: list[float] = []
    curves: dict[str, list[list[float]]] = {}
    for model in LOOKS:
        result = results.find(case, model)
        for record in result.records if result else ():
            found = curve(record)
            times = times or (found[0] if found else [])
            if found and found[0] == times:
                curves.setdefault(model, []).append(found[1])
    return times, curves


def _per_frame(record: dict[str, Any]) -> tuple[list[float], list[float]] | None:
    details = record["details"]
    errors = details.get("metrics_per_frame", {}).get("relative_l2")
    return None if errors is None else (details["times"], _numbers(errors))


def _long(record: dict[str, Any]) -> tuple[list[float], list[float]] | None:
    found = record["details"].get("stability")
    return None if found is None else (found["times"], _numbers(found["relative_l2"]))


def _numbers(values: list[float | None]) -> list[float]:
    """Records write null for what is not finite."""
    return [math.nan if value is None else value for value in values]


def _spent(results: Results, case: str) -> dict[str, Spent]:
    spent = {}
    for model in LOOKS:
        result = results.find(case, model)
        if result is None or model in TRIVIAL or not math.isfinite(_mean(result)):
            continue
        errors = [record["metrics"]["rmse"] for record in result.records]
        spent[model] = Spent([record["train_seconds"] for record in result.records], errors)
    return spent


def _mean(result: Result | None) -> float:
    value = None if result is None else result.metric("rmse").value
    return math.nan if value is None else value


def _ends(curves: dict[str, Any]) -> str:
    """The last number of each curve in words."""

    def last(values: Any) -> float:
        rows = values if isinstance(values[0], list) else [values]
        return float(sum(row[-1] for row in rows) / len(rows))

    return "At the end: " + ", ".join(f"{look_of(name).label} {last(v):.3g}" for name, v in curves.items()) + "."


RECORD_FIGURES: dict[str, Callable[[Archive], Drawn]] = {
    TIME: growth_figures,
    STABILITY: stability_figures,
    COST: cost_figures,
    DATA: efficiency_figures,
}
"""What is drawn from records, by section."""
