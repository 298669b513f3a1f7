"""How figures look (colours that colour-blind readers can tell apart, dashes, markers, type) and are written."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib import rc_params_from_file
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from spectrakan.errors import ConfigError
from spectrakan.fields import FieldSpec
from spectrakan.storage import write_bytes_atomically

TYPE = rc_params_from_file(Path(__file__).with_name("figures.mplstyle"), use_default_template=False)
"""Settings of matplotlib that all figures share."""

Arranged = Literal["constrained", "compressed"]
"""Matplotlib's layouts: of plots, and of maps of fixed proportions."""
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
    "deeponet": Look("DeepONet", "#999933", "--", ">"),
    "cvit": Look("CViT", "#117733", "-.", "<"),
    "persistence": Look("persistence", "#777777", ":", "_"),
    "climatology": Look("climatology", "#777777", (0, (1, 1)), "|"),
    "ridge": Look("ridge", "#444444", (0, (4, 1, 1, 1)), "x"),
}
"""The look of each model of the catalog; hues after Okabe and Ito, and Tol."""

DASHES = ((0, (2, 1)), (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
SPARE = ("#1B9E77", "#7570B3", "#A6761D", "#66A61E", "#E7298A", "#666666")


def look_of(name: str) -> Look:
    """The look of a model; `model (variant)` has its colour with other dashes, an unknown name a spare colour.

    >>> look_of("fno").label, look_of("spectrakan (paper)").label
    ('FNO', 'SpectraKAN (paper)')
    """
    if name in LOOKS:
        return LOOKS[name]
    model, _, variant = name.partition(" (")
    if variant and model in LOOKS:
        known = LOOKS[model]
        return Look(f"{known.label} ({variant}", known.colour, DASHES[sum(name.encode()) % len(DASHES)], "d")
    return Look(name, SPARE[sum(name.encode()) % len(SPARE)], "--", ".")


def field_label(field: FieldSpec) -> str:
    """A field's name and unit for an axis.

    >>> field_label(FieldSpec("pressure", "hPa")), field_label(FieldSpec("velocity_x"))
    ('pressure (hPa)', 'velocity x')
    """
    name = field.name.replace("_", " ")
    return f"{name} ({field.unit})" if field.unit else name


@contextmanager
def figure_style() -> Iterator[None]:
    """Within it, figures have the type of `TYPE` whatever the user's own settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(TYPE)
        yield


class StyledFigure(Figure):
    """A figure that notebooks display by itself."""

    def _repr_png_(self) -> bytes:
        return figure_bytes(self)


def blank_figure(width: float, height: float, arranged: Arranged = "constrained") -> Figure:
    """An empty figure of that many inches, which needs no display."""
    figure = StyledFigure(figsize=(width, height), layout=arranged)
    FigureCanvasAgg(figure)
    return figure


DOTS_PER_INCH = 150
# Without dates and versions, and with fixed names inside, so that the same numbers give the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def figure_bytes(figure: Figure, kind: str = "png") -> bytes:
    """The figure as a PNG, SVG or PDF file; text stays text in the latter two, maps are pictures in them."""
    if kind not in _METADATA:
        raise ConfigError(f"figures are written as {', '.join(_METADATA)}, got '{kind}'")
    buffer = io.BytesIO()
    own: Any = {"svg.fonttype": "none", "svg.hashsalt": "spectrakan", "pdf.fonttype": 42}
    # Ticks are made while a figure is written, so the style must be set here as well.
    with figure_style(), matplotlib.rc_context(own):
        figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=_METADATA[kind])
    return buffer.getvalue()


def save_figure(figure: Figure, path: Path | str) -> None:
    """Write a figure in the format of the file's ending, in one step."""
    target = Path(path)
    write_bytes_atomically(target, figure_bytes(figure, target.suffix.removeprefix(".").lower()))
