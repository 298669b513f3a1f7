"""The scores of a shipped model and the card that is written from them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from spectrakan.config import as_mapping
from spectrakan.models.spectrakan import SpectraKANConfig
from spectrakan.models.stages import Stages
from spectrakan.runs import as_json, package_version

DATA = {
    "droplet2d": (
        "Pools of water with walls, solved by the Lax-Friedrichs scheme of `droplet2d` on 128² cells and averaged to "
        "32² and 64². One to seven drops anywhere, heights 0.1 to 2.2 over a depth of 0.9 to 1.1, widths 0.002 to "
        "0.012; half of the pools are in motion at the start, and drops go on falling in every 8 frames. Frames are "
        "0.02 s apart."
    ),
    "darcy2d": (
        "Rock of two permeabilities (0.1 and 1) on 64² and 32² cells: a third sums of bumps as in PDEBench, a third "
        "Gaussian random fields, a third strokes of a round brush; pressure by a sparse factorisation."
    ),
    "cns1d": (
        "The random fields of `cns1d` on 128 cells (solved on 256), half of them with weaker waves; 20 frames, 0.05 "
        "apart. History 1: the model sees one frame, not ten as in the paper's task."
    ),
}
FORM = {
    "droplet2d": "the form before the present default, which where fields evolve conditions every layer",
    "darcy2d": "as by default for steady maps",
}
FORM["cns1d"] = FORM["droplet2d"]
"""What the form of the token, which is that of all shipped models, is beside the default."""
LIMITS = {
    "droplet2d": (
        "One gravity (9.81), one box, one viscosity (that of the scheme on 128² cells), depths and speeds inside the "
        "range below. Dam breaks, dry ground and other gravities are outside; the page has a button that shows it. "
        "The band holds for pools touched as in calibration, on 32² cells."
    ),
    "darcy2d": "Two permeabilities, a constant source, zero pressure on the edge. Other contrasts are outside.",
    "cns1d": (
        "One viscosity, one gas, periodic ends, states inside the range below. Errors grow over the frames; shocks "
        "are smeared."
    ),
}


def read_scores(folder: Path) -> dict[str, Any]:
    """What NAME.json holds."""
    found: dict[str, Any] = json.loads(folder.with_suffix(".json").read_text())
    return found


def write_scores(folder: Path, facts: dict[str, Any]) -> None:
    """Write NAME.json, keeping the baselines that are there."""
    path = folder.with_suffix(".json")
    kept = read_scores(folder).get("baselines", {}) if path.is_file() else {}
    path.write_text(json.dumps(as_json({**facts, "baselines": kept}), indent=1) + "\n")


def write_baseline(folder: Path, kind: str, entry: dict[str, Any]) -> None:
    """Add a baseline's scores and write the card again."""
    path = folder.with_suffix(".json")
    facts = read_scores(folder) if path.is_file() else {"baselines": {}}
    facts["baselines"][kind] = entry
    path.write_text(json.dumps(as_json(facts), indent=1) + "\n")
    if "scores" in facts:
        write_card(folder)


def write_card(folder: Path) -> None:
    """Write NAME.md from NAME.json."""
    facts = read_scores(folder)
    task, training = facts["task"], facts["training"]
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    given = ", ".join(f"{key}={value}" for key, value in settings(folder).items())
    head = (
        f"A SpectraKAN of {facts['parameters']:,} weights ({size:.2f} MB, float32 safetensors) for `{task}`; "
        f'`sk.from_pretrained("{facts["name"]}")`.'
    )
    trained = (
        f"{training['minutes']:g} minutes of one core (AdamW, rate "
        f"{training['rate']:g}, cosine, average of the weights, "
        f"seed {training['seed']}) on {training['samples']:,} samples, reflected and "
        f"turned at random. Settings: {given}; "
        f"all others are the defaults of version {package_version('spectrakan')}. "
        f"The token is that of centre, mean and spread of one frame and acts in the readout alone: {FORM[task]}. "
        f"Made by `python tools/make_pretrained.py {facts['name']}`; the history has the weights since commit "
        f"{commit(folder)}."
    )
    ranges = ", ".join(f"{low:g} to {high:g}" for low, high in facts["range"])
    sections = {
        "Data": [DATA[task]],
        "Training": [trained],
        "Scores": scores(facts),
        "Limits": [LIMITS[task], f"Training range of each input field: {ranges}."],
        "Certificate": certificate(facts["certificate"]),
        "Licence": ["Apache-2.0, like the package; all data were made by its own solvers."],
    }
    lines = [f"# {facts['name']}", "", head]
    for title, text in sections.items():
        lines += ["", f"## {title}", *text]
    lines.append("")
    folder.with_suffix(".md").write_text("\n".join(lines))


def settings(folder: Path) -> dict[str, Any]:
    """Settings of the saved model that are not today's defaults."""
    saved = json.loads((folder / "model.json").read_text())
    usual = {**as_mapping(SpectraKANConfig()), **as_mapping(Stages())}
    return {key: value for key, value in {**saved["config"], **saved["stages"]}.items() if usual.get(key) != value}


def commit(folder: Path) -> str:
    """The commit that brought the weights as they are now."""
    asked = ["git", "log", "-1", "--format=%h", "--", str(folder)]
    return subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def scores(facts: dict[str, Any]) -> list[str]:
    """A table of errors on fresh samples, baselines beside, and the conformal band."""
    if facts["task"] != "droplet2d":
        lines = ["Relative L2 errors on fresh samples (means):", ""]
        for cells, found in facts["scores"].items():
            told = ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in found.items() if key != "states")
            lines.append(f"- {cells} cells along an axis, {found['states']} samples: {told}")
        return lines
    about = (
        "Rollouts over 50 frames (1 s) from fresh multi-drop states, half of them in motion. Relative L2 error of "
        "the depth, mean over frames and states; then of all fields at unit scale; then of the depth in the last "
        "frame. "
        "All models were trained for the same time on the same data."
    )
    lines = [
        about,
        "",
        "| model | weights | cells | states | depth | all fields | last frame |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    models = {"spectrakan": facts, **facts["baselines"]}
    for name, entry in models.items():
        for cells, found in sorted(entry["scores"].items(), key=lambda item: int(item[0])):
            numbers = [found[key] for key in ("relative_l2", "relative_l2_all_fields", "relative_l2_last_frame")]
            row = [
                name,
                f"{entry['parameters']:,}",
                f"{cells}²",
                str(found["states"]),
                *(f"{n:.4g}" for n in numbers),
            ]
            lines.append(f"| {' | '.join(row)} |")
    band, ends = facts["band"], facts["band"]["relative_l2"]
    told = (
        f"Conformal band ({band['coverage']:.0%}, {band['calibration_pools']} calibration pools touched at random, "
        f"{band['cells']}²): {ends[0]:.3g} after 1 frame, {ends[len(ends) // 2]:.3g} after {len(ends) // 2 + 1}, "
        f"{ends[-1]:.3g} after {len(ends)}. "
        f"Largest drift of the mass there: {100 * band['largest_mass_drift']:.1g} %."
    )
    lines += ["", told]
    return lines


LARGEST_RATIO = 1000.0
"""A bound this many times what attacks reach says nothing."""


def certificate(found: dict[str, Any]) -> list[str]:
    """The bounds as a table; a certificate of the first kind has none of the prediction."""
    cells = " x ".join(map(str, found["cells"]))
    names = [name for name in ("modulation", "prediction") if name in found["radii"][0]]
    about = (
        f"`sk.certify` around {found['inputs']} fresh inputs on {cells} cells, in sup-norm balls in normalised "
        "units: how many times the change of its input the token's KAN, and how many times the change of the field "
        f"the {' and the '.join(names)} can change at most (the largest over the inputs), and what attacks reach."
    )
    head = ["radius", "KAN", *(word for name in names for word in (name, f"attacks on the {name}"))]
    lines = [about, "", f"| {' | '.join(head)} |", "|---:" * len(head) + "|"]
    for entry in found["radii"]:
        status = entry["status"]
        row = [f"{entry['radius']:g}", f"{entry['kan']:.4g} ({status.get('kan', 'estimated')})"]
        for name in names:
            bound, worst = entry[name], entry[f"{name}_attacked"]
            proved = bound and bound <= LARGEST_RATIO * worst
            told = f"{bound:.4g} ({status.get(name, 'estimated')})" if proved else "not bounded to any use"
            row += [told, f"{worst:.4g}"]
        lines.append(f"| {' | '.join(row)} |")
    return lines
