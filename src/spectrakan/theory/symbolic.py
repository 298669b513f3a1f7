"""Closed forms for learned edges: which simple function comes close to a curve, and how close.

Every candidate is y = a f(b x + c) + d. For given (b, c) the best (a, d) are a linear least-squares problem, so two
numbers are searched over a mesh that covers the data's range; all four are then polished from the best places.
The fit is weighed by the data, for it is made at the data's points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from jaxtyping import Float
from scipy.optimize import least_squares
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.nn.kan import KAN
from spectrakan.theory.edge_views import edge_views

Numbers = npt.NDArray[np.float64]
Shape = Literal["constant", "linear", "quadratic", "cubic", "exp", "sin", "tanh", "gaussian", "abs"]


@dataclass(frozen=True)
class Form:
    """A candidate: its function of s, how it is written, and what is searched in s = b x + c."""

    function: Callable[[Numbers], Numbers]
    text: str
    searched: Literal["nothing", "shift", "scale", "both"]


FORMS: dict[Shape, Form] = {
    "constant": Form(np.zeros_like, "0", "nothing"),
    "linear": Form(lambda s: s, "{}", "nothing"),
    "quadratic": Form(np.square, "({})^2", "shift"),
    "cubic": Form(lambda s: s**3, "({})^3", "shift"),
    "abs": Form(np.abs, "|{}|", "shift"),
    "exp": Form(lambda s: np.exp(np.clip(s, -60, 60)), "exp({})", "scale"),
    "sin": Form(np.sin, "sin({})", "both"),
    "tanh": Form(np.tanh, "tanh({})", "both"),
    "gaussian": Form(lambda s: np.exp(-np.square(s)), "exp(-({})^2)", "both"),
}
"""From simple to involved: earlier ones win where they are good enough."""

MESH = 33
STARTS = 2
MOST_POINTS = 256


@dataclass(frozen=True)
class Suggestion:
    """y = a f(b x + c) + d and how well it fits."""

    shape: Shape
    a: float
    b: float
    c: float
    d: float
    r2: float
    """Share of the curve's variance that it explains, over the data."""
    max_error: float
    """Largest distance from the curve at the data's points."""

    def __call__(self, x: Any) -> Numbers:
        """Values of the closed form."""
        return self.a * FORMS[self.shape].function(self.b * np.asarray(x, dtype=np.float64) + self.c) + self.d

    @property
    def formula(self) -> str:
        """The closed form as text, to three digits.

        >>> Suggestion("sin", 2.0, 3.0, 0.5, -1.0, 1.0, 0.0).formula
        '2 sin(3 x + 0.5) - 1'
        """
        if self.shape == "constant":
            return f"{self.d:.3g}"
        inner = f"{'' if self.b == 1 else f'{self.b:.3g} '}x{_signed(self.c)}"
        return f"{self.a:.3g} {FORMS[self.shape].text.format(inner)}{_signed(self.d)}"


def suggest(x: Numbers, y: Numbers, *, good: float = 0.999) -> list[Suggestion]:
    """Closed forms for points of a curve, the suggested one first.

    The simplest form with R² of at least `good` comes first, then all others by R². A curve that is flat but for
    rounding is `constant`, with R² of one.

    >>> x = np.linspace(-1, 1, 50)
    >>> suggest(x, 3 * x + 1)[0].formula
    '3 x + 1'
    """
    x, y = _points(x, y)
    found = [_fit(shape, x, y) for shape in FORMS]
    ranked = sorted(found, key=lambda one: -one.r2)
    first = next((one for one in found if one.r2 >= good), ranked[0])
    return [first, *(one for one in ranked if one is not first)]


def suggest_first(x: Numbers, y: Numbers, *, good: float = 0.999) -> Suggestion:
    """The first entry of `suggest` alone, which need not try all forms."""
    x, y = _points(x, y)
    best = None
    for shape in FORMS:
        found = _fit(shape, x, y)
        if found.r2 >= good:
            return found
        best = found if best is None or found.r2 > best.r2 else best
    return best if best is not None else _fit("constant", x, y)


def suggest_edges(
    kan: KAN, samples: Float[Tensor, "samples in"], *, good: float = 0.999
) -> list[list[list[Suggestion]]]:
    """The suggested closed form of every edge, `[layer][out][in]`, fitted where the samples pass."""
    found = []
    for view in edge_views(kan, samples):
        inputs, outputs = view.inputs.double().numpy(), view.outputs.double().numpy()
        rows = [[suggest_first(x, y, good=good) for x, y in zip(inputs, row, strict=True)] for row in outputs]
        found.append(rows)
    return found


def _points(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """The points in order of x."""
    x, y = (np.asarray(part, dtype=np.float64).ravel() for part in (x, y))
    if x.shape != y.shape or x.size < 4 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ConfigError(f"expected at least 4 finite points of a curve, got {x.size} x and {y.size} y")
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def _fit(shape: Shape, x: Numbers, y: Numbers) -> Suggestion:
    form = FORMS[shape]
    middle, half = (x.max() + x.min()) / 2, max((x.max() - x.min()) / 2, 1e-12)
    level, size = y.mean(), max(float(y.std()), 1e-300)
    # Both at unit scale, where one mesh and one tolerance fit every curve; thinned to a number that says as much.
    thin = np.linspace(0, x.size - 1, min(x.size, MOST_POINTS)).round().astype(int)
    unit, curve = (x[thin] - middle) / half, (y[thin] - level) / size
    tried = [_polished(form, start, unit, curve) for start in _starts(form, unit, curve)]
    a, b, c, d = min(tried, key=lambda numbers: float(np.square(_residual(numbers, form, unit, curve)).sum()))
    scale = b / half
    numbers = _tidied(shape, *(float(one) for one in (a * size, scale, c - scale * middle, d * size + level)))
    return _scored(Suggestion(shape, *numbers, r2=0.0, max_error=0.0), x, y)


def _starts(form: Form, unit: Numbers, curve: Numbers) -> list[Numbers]:
    """The best places (a, b, c, d) of a mesh over what this form searches in (b, c)."""
    scales = np.array([1.0]) if form.searched in ("nothing", "shift") else np.geomspace(0.2, 20.0, MESH)
    if form.searched == "scale":
        scales = np.concatenate([-scales, scales])
    shifts = np.linspace(-1.5, 1.5, MESH) if form.searched in ("shift", "both") else np.array([0.0])
    # A shift is measured where the form turns: s = b (x - shift).
    b = np.repeat(scales, len(shifts))
    c = -b * np.tile(shifts, len(scales))
    values = form.function(b[:, None] * unit + c[:, None])
    centred = values - values.mean(1, keepdims=True)
    power = np.square(centred).sum(1)
    slope = np.where(power > 0, centred @ curve / np.where(power > 0, power, 1.0), 0.0)
    explained = slope * (centred @ curve)
    best = np.argsort(-explained, kind="stable")[:STARTS]
    return [np.array([slope[i], b[i], c[i], curve.mean() - slope[i] * values[i].mean()]) for i in best]


def _polished(form: Form, start: Numbers, unit: Numbers, curve: Numbers) -> Numbers:
    free = {"nothing": [0, 3], "shift": [0, 2, 3], "scale": [0, 1, 3], "both": [0, 1, 2, 3]}[form.searched]

    def put(some: Numbers) -> Numbers:
        numbers = start.copy()
        numbers[free] = some
        return numbers

    def residual(some: Numbers) -> Numbers:
        return _residual(put(some), form, unit, curve)

    result = least_squares(residual, start[free], method="lm", max_nfev=80)
    return put(np.asarray(result.x, dtype=np.float64))


def _residual(numbers: Numbers, form: Form, unit: Numbers, curve: Numbers) -> Numbers:
    a, b, c, d = numbers
    distance: Numbers = a * form.function(b * unit + c) + d - curve
    return distance


def _tidied(shape: Shape, a: float, b: float, c: float, d: float) -> tuple[float, float, float, float]:
    """The same function with the numbers where a reader expects them: no sign or factor that could be elsewhere."""
    if shape == "constant":
        return 0.0, 1.0, 0.0, d
    if shape == "linear":
        return a * b, 1.0, 0.0, d + a * c
    if shape in ("quadratic", "cubic", "abs"):
        power = {"quadratic": 2, "cubic": 3, "abs": 1}[shape]
        return a * b**power, 1.0, c / b, d
    if shape == "exp":
        return a * math.exp(min(c, 60.0)), b, 0.0, d
    if b < 0:
        b, c, a = -b, -c, (a if shape == "gaussian" else -a)
    if shape == "sin":
        c = math.remainder(c, 2 * math.pi)
        if abs(c) > math.pi / 2:
            c, a = c - math.copysign(math.pi, c), -a
    return a, b, c, d


def _scored(form: Suggestion, x: Numbers, y: Numbers) -> Suggestion:
    error = form(x) - y
    total = float(np.square(y - y.mean()).sum())
    left = float(np.square(error).sum())
    flat = total <= (1e-6 * float(np.abs(y).max())) ** 2 * y.size
    r2 = 1.0 if flat else 1.0 - left / total
    return Suggestion(form.shape, form.a, form.b, form.c, form.d, r2, float(np.abs(error).max()))


def _signed(value: float) -> str:
    return "" if value == 0 else f" {'+' if value > 0 else '-'} {abs(value):.3g}"
