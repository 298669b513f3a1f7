"""How models and fields look: names, colours that colour-blind readers can tell apart, dashes, markers, type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from spectrakan.fields import FieldSpec

TYPE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    # Small colour bars have no room for 0.00012: powers of ten are put above them instead.
    "axes.formatter.limits": (-2, 4),
}
"""Settings of matplotlib that all figures share."""

SEQUENTIAL, GIVEN, SIGNED, ERROR = "viridis", "cividis", "PuOr_r", "RdBu_r"
"""Maps of colour: fields of one sign, inputs of another kind than the output, fields of both signs, errors."""


@dataclass(frozen=True)
class Look:
    """How a model is drawn in all figures."""

    label: str
    colour: str
    dash: Any = "-"
    marker: str = "o"
    width: float = 1.3


LOOKS: dict[str, Look] = {
    "spectrakan": Look("SpectraKAN", "#D55E00", "-", "*", 2.2),
    "amfno": Look("AM-FNO trunk", "#AA4499", "--", "P"),
    "unet": Look("U-Net", "#009E73", "-", "s"),
    "fno": Look("FNO", "#0072B2", "-", "o"),
    "ffno": Look("FFNO", "#56B4E9", "--", "D"),
    "lno": Look("LNO", "#CC79A7", "-", "v"),
    "transolver": Look("Transolver", "#E69F00", "-", "^"),
    "local_fno": Look("LocalFNO", "#332288", "-.", "h"),
    "deepokan": Look("DeepOKAN", "#882255", "--", "X"),
    "cvit": Look("CViT", "#117733", "-.", "<"),
    "deeponet": Look("DeepONet", "#999933", "--", ">"),
    "persistence": Look("persistence", "#777777", ":", "_"),
    "climatology": Look("climatology", "#777777", (0, (1, 1)), "|"),
    "ridge": Look("ridge", "#444444", (0, (4, 1, 1, 1)), "x"),
}
"""The look of each model of the catalog; hues after Okabe and Ito, and Tol."""

SPARE = ("#1B9E77", "#7570B3", "#A6761D", "#66A61E", "#E7298A", "#666666")


def look_of(name: str) -> Look:
    """The look of a model; `model (variant)` keeps the model's colour, an unknown name gets one of its own.

    >>> look_of("fno").label, look_of("spectrakan (paper)").label
    ('FNO', 'SpectraKAN (paper)')
    """
    if name in LOOKS:
        return LOOKS[name]
    model, _, variant = name.partition(" (")
    if variant and model in LOOKS:
        known = LOOKS[model]
        return Look(f"{known.label} ({variant}", known.colour, (0, (2, 1)), "d")
    return Look(name, SPARE[sum(name.encode()) % len(SPARE)], "--", ".")


def field_label(field: FieldSpec) -> str:
    """A field's name and unit for an axis.

    >>> field_label(FieldSpec("pressure", "hPa")), field_label(FieldSpec("velocity_x"))
    ('pressure (hPa)', 'velocity x')
    """
    name = field.name.replace("_", " ")
    return f"{name} ({field.unit})" if field.unit else name


@contextmanager
def house_type() -> Iterator[None]:
    """Within it, figures are set in the house's type whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        with matplotlib.rc_context(TYPE):
            yield


def blank_figure(width: float, height: float, *, constrained: bool = False) -> Figure:
    """An empty figure of that many inches, which needs no display."""
    figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    return figure
