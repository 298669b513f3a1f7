"""What an evaluation found, as tables on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from spectrakan.metrics.spectral import BANDS

ROWS = 8
"""Frames that are shown of a curve; the record has all."""


def print_evaluation(found: dict[str, Any]) -> None:
    """Scores first, then each question that was asked."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    _print_scores(console, found)
    for name, show in SHOWN.items():
        if name in found:
            console.print()
            show(console, found[name])


def _print_scores(console: Console, scores: dict[str, Any]) -> None:
    cells = _cells(scores["resolution"])
    console.print(
        f"{scores['model']} on {scores['num_samples']} samples, {cells} cells, {scores['horizon']} frames ahead"
    )
    fields = scores["metrics_per_field"]
    table = _table("metric", "all", *fields)
    for name, value in scores["metrics"].items():
        table.add_row(name, _number(value), *(_number(each.get(name)) for each in fields.values()))
    console.print(table)


def _print_resolutions(console: Console, found: dict[str, Any]) -> None:
    console.print(f"Trained at {found['trained_at']}, on the same samples at each resolution:")
    table = _table("cells", "relative_l2", "over trained", "rmse", "max_error", "frmse_high", "data")
    for entry in found["resolutions"]:
        each = entry["metrics"]
        columns = (each["relative_l2"], entry.get("ratio"), each["rmse"], each["max_error"], each["frmse_high"])
        table.add_row(_cells(entry["resolution"]), *map(_number, columns), entry["data"])
    console.print(table)


def _print_profile(console: Console, found: dict[str, Any]) -> None:
    curves = found["relative_l2"]
    console.print("Relative L2 error against time:")
    table = _table("time", *curves)
    for place in _spread(len(found["times"])):
        table.add_row(f"{found['times'][place]:g}", *(_number(curve[place]) for curve in curves.values()))
    console.print(table)
    for entry in found["thresholds"] or []:
        median, never = entry["median_time"], entry["never"]
        when = "never for half of the samples" if median is None else f"after a time of {median:.4g} (median)"
        console.print(f"an error of {entry['relative_l2']:g} is passed {when}; {never} samples never pass it")
    _print_spectra(console, found["spectra"])
    if found["drift"]:
        _print_drift(console, found["drift"])


def _print_spectra(console: Console, spectra: dict[str, Any]) -> None:
    console.print(f"Energy by band of wavenumbers at time {spectra['times'][-1]:g}, predicted over true:")
    names = [name.removeprefix("frmse_") for name in BANDS]
    table = _table("field", *names)
    for field, rows in spectra["truth"].items():
        said = spectra["prediction"][field][-1]
        table.add_row(field, *(_number(_ratio(said[part], rows[-1][part])) for part in BANDS.values()))
    console.print(table)


def _print_drift(console: Console, drift: dict[str, Any]) -> None:
    console.print("Drift of the domain's mean until the last frame (rms over samples):")
    table = _table("quantity", "at the start", "in truth", "in prediction")
    for name in drift["quantities"]:
        ends = (drift["start"][name], drift["truth"][name][-1], drift["prediction"][name][-1])
        table.add_row(name, *map(_number, ends))
    console.print(table)


def _print_cost(console: Console, found: dict[str, Any]) -> None:
    own = found.get("rollout", found)
    console.print(
        f"Rollout of {found['num_samples']} samples over {found['horizon']} frames on {found['device']}, "
        f"{found['threads']} threads, {found['precision']}: {own['seconds']:.4g} s, "
        f"{own['seconds_per_frame']:.4g} s a frame, {own['peak_memory_mb']:.4g} MB beside {own['weights_mb']:.4g} MB "
        "of weights"
    )
    if "solver" not in found:
        console.print("These samples were not made by the project's solver, so there is no speed-up over it.")
        return
    table = _table("solver on", "error", "seconds", "over the model")
    for point in found["solver"]:
        table.add_row(_cells(point["resolution"]), *(_number(point[key]) for key in ("error", "seconds", "speed_up")))
    console.print(table)
    equal = found["equal_resolution"]
    alone, together = _number(equal["speed_up"]), _number(equal["with_history"])
    console.print(f"speed-up at equal resolution {alone}, with the time of the given frames {together}")
    if (at := found["equal_error"]) is None:
        console.print("the model's error is not finite, so there is no solver of equal error")
        return
    between = at["interpolated"]
    error, gain = _number(own["error"]), _number(at["speed_up"])
    told = "" if between is None else f", {_number(between['speed_up'])} between grids"
    console.print(
        f"speed-up at the model's error of {error}: {at['bound'] or 'about'} {gain} "
        f"(solver on {_cells(at['resolution'])}){told}"
    )


def _print_stability(console: Console, found: dict[str, Any]) -> None:
    console.print(
        f"{found['blow_ups']} of {found['num_samples']} samples blow up within {found['horizon']} frames "
        f"({found['factor']} horizons; beyond {found['limit']:g} times the data's range, or not finite)"
    )
    broken = [entry for entry in found["samples"] if entry["blow_up_frame"] is not None]
    if broken:
        table = _table("sample", "frame", "time", "what")
        for entry in broken[:ROWS]:
            table.add_row(
                str(entry["sample"]), str(entry["blow_up_frame"]), f"{entry['blow_up_time']:g}", entry["kind"]
            )
        console.print(table)
    if found["frames_with_truth"]:
        table = _table("time", "median error", "largest error")
        for place in _spread(found["frames_with_truth"]):
            errors = (found["median_relative_l2"][place], found["largest_relative_l2"][place])
            table.add_row(f"{found['times'][place]:g}", *map(_number, errors))
        console.print(table)


def _print_bands(console: Console, found: dict[str, Any]) -> None:
    promised = "nothing is promised" if found["promised"] is None else f"promised {found['promised']:.1%}"
    kept = "" if found["promised"] is None else ", kept" if found["kept"] else ", NOT kept"
    console.print(
        f"Bands per {found['per']} from {found['num_calibration']} trajectories hold for {found['measured']:.1%} of "
        f"{found['num_test']} others, {promised} (standard error {found['standard_error']:.1%}){kept}"
    )
    for message in found.get("warnings", []):
        console.print(f"warning: {message}", markup=False)
    table = _table("field", "mean half-width, first frame", "last frame")
    for field, widths in found["half_width"].items():
        table.add_row(field, _number(widths[0]), _number(widths[-1]))
    console.print(table)


SHOWN = {
    "resolutions": _print_resolutions,
    "profile": _print_profile,
    "cost": _print_cost,
    "stability": _print_stability,
    "bands": _print_bands,
}
"""How each part of an evaluation is shown, in this order."""


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left")
    return table


def _spread(count: int) -> Sequence[int]:
    """At most `ROWS` places from the first to the last."""
    return sorted({round(place * (count - 1) / max(1, min(ROWS, count) - 1)) for place in range(min(ROWS, count))})


def _cells(resolution: Sequence[int]) -> str:
    return " x ".join(str(size) for size in resolution)


def _ratio(said: Sequence[float | None], true: Sequence[float | None]) -> float | None:
    parts = [sum(value or 0.0 for value in values) for values in (said, true)]
    return None if None in said or not parts[1] else parts[0] / parts[1]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
