"""What an evaluation found, as tables on the terminal."""

from collections.abc import Sequence
from typing import Any

from spectrakan.cli.terminal import print_table

ROWS = 8
"""Frames that are shown of a curve; the record has all."""


def print_evaluation(found: dict[str, Any]) -> None:
    """Scores first, then each question that was asked."""
    _print_scores(found)
    for name, show in SHOWN.items():
        if name in found:
            print()
            show(found[name])


def _print_scores(scores: dict[str, Any]) -> None:
    cells = _cells(scores["resolution"])
    print(f"{scores['model']} on {scores['num_samples']} samples, {cells} cells, {scores['horizon']} frames ahead")
    fields = scores["metrics_per_field"]
    rows = ([name, value, *(each.get(name) for each in fields.values())] for name, value in scores["metrics"].items())
    print_table(["metric", "all", *fields], rows)
    if len(times := scores["times"]) > 1:
        print("Error against time:")
        curves = [scores["metrics_per_frame"][name] for name in ("relative_l2", "rmse")]
        rows = ([f"{times[frame]:g}", *(curve[frame] for curve in curves)] for frame in _spread(len(times)))
        print_table(["time", "relative_l2", "rmse"], rows)


def _print_resolutions(found: dict[str, Any]) -> None:
    print(f"Trained at {found['trained_at']}, on the same samples at each resolution:")
    rows = []
    for entry in found["resolutions"]:
        error, *others = (entry["metrics"][name] for name in ("relative_l2", "rmse", "max_error", "frmse_high"))
        rows.append([_cells(entry["resolution"]), error, entry.get("ratio"), *others, entry["data"]])
    head = ["cells", "relative_l2", "over trained", "rmse", "max_error", "frmse_high", "data"]
    print_table(head, rows)


def _print_stability(found: dict[str, Any]) -> None:
    print(
        f"{found['blow_ups']} of {found['num_samples']} samples blow up within {found['horizon']} frames "
        f"({found['factor']} horizons; beyond {found['limit']:g} times the data's range, or not finite)"
    )
    broken = [
        [str(entry["sample"]), str(entry["blow_up_frame"]), f"{entry['blow_up_time']:g}", entry["kind"]]
        for entry in found["samples"]
        if entry["blow_up_frame"] is not None
    ]
    if broken:
        print_table(["sample", "frame", "time", "what"], broken[:ROWS])
    if count := found["frames_with_truth"]:
        curves = found["median_relative_l2"], found["largest_relative_l2"]
        rows = [[f"{found['times'][frame]:g}", *(curve[frame] for curve in curves)] for frame in _spread(count)]
        print_table(["time", "median error", "largest error"], rows)


def _print_bands(found: dict[str, Any]) -> None:
    promised = "nothing is promised" if found["promised"] is None else f"promised {found['promised']:.1%}"
    kept = "" if found["promised"] is None else ", kept" if found["kept"] else ", NOT kept"
    print(
        f"Bands from {found['num_calibration']} trajectories hold for {found['measured']:.1%} of "
        f"{found['num_test']} others, {promised} (standard error {found['standard_error']:.1%}){kept}"
    )
    for message in found.get("warnings", []):
        print(f"warning: {message}")
    rows = ([field, widths[0], widths[-1]] for field, widths in found["half_width"].items())
    print_table(["field", "mean half-width, first frame", "last frame"], rows)


SHOWN = {
    "resolutions": _print_resolutions,
    "stability": _print_stability,
    "bands": _print_bands,
}
"""How each part of an evaluation is shown, in this order."""


def _spread(count: int) -> Sequence[int]:
    """At most `ROWS` indices from the first to the last."""
    return sorted({round(index * (count - 1) / max(1, min(ROWS, count) - 1)) for index in range(min(ROWS, count))})


def _cells(resolution: Sequence[int]) -> str:
    return " x ".join(map(str, resolution))
