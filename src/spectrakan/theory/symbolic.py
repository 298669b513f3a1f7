"""Closed forms for learned edges: which simple function is close to a curve, and how close.

Every candidate is y = a f(b x + c) + d. For given (b, c) the best (a, d) solve a linear least-squares problem, so two
numbers are searched over a mesh that covers the data's range; all four are then refined from the best mesh points.
The fit is made at the data's points, so it is weighted by their density.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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
"""From simple to complicated: the first one that fits well enough is suggested."""

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
    found = list(_fits(x, y))
    ranked = sorted(found, key=lambda one: -one.r2)
    first = next((one for one in found if one.r2 >= good), ranked[0])
    return [first, *(one for one in ranked if one is not first)]


def suggest_first(x: Numbers, y: Numbers, *, good: float = 0.999) -> Suggestion:
    """The first entry of `suggest`, without trying all forms."""
    found: list[Suggestion] = []
    for one in _fits(x, y):
        found.append(one)
        if one.r2 >= good:
            return one
    return max(found, key=lambda one: one.r2)


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


def _fits(x: Numbers, y: Numbers) -> Iterator[Suggestion]:
    """The best fit of every form, from simple to complicated."""
    x, y = (np.asarray(part, dtype=np.float64).ravel() for part in (x, y))
    if x.shape != y.shape or x.size < 4 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ConfigError(f"expected at least 4 finite points of a curve, got {x.size} x and {y.size} y")
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    middle, half = (x[-1] + x[0]) / 2, max((x[-1] - x[0]) / 2, 1e-12)
    level, size = y.mean(), max(float(y.std()), 1e-300)
    # Both at unit scale, where one mesh and one tolerance fit every curve; thinned to save time.
    thin = np.linspace(0, x.size - 1, min(x.size, MOST_POINTS)).round().astype(int)
    unit, curve = (x[thin] - middle) / half, (y[thin] - level) / size
    total = float(np.square(y - level).sum())
    flat = total <= (1e-6 * float(np.abs(y).max())) ** 2 * y.size
    for shape, form in FORMS.items():
        tried = [_refined(form, start, unit, curve) for start in _starts(form, unit, curve)]
        a, b, c, d = min(tried, key=lambda numbers: float(np.square(_residual(numbers, form, unit, curve)).sum()))
        scale = b / half
        numbers = _tidied(shape, *(float(one) for one in (a * size, scale, c - scale * middle, d * size + level)))
        error = Suggestion(shape, *numbers, r2=0.0, max_error=0.0)(x) - y
        r2 = 1.0 if flat else 1.0 - float(np.square(error).sum()) / total
        yield Suggestion(shape, *numbers, r2, float(np.abs(error).max()))


def _starts(form: Form, unit: Numbers, curve: Numbers) -> list[Numbers]:
    """The best (a, b, c, d) of a mesh over what this form searches in (b, c)."""
    scales = np.array([1.0]) if form.searched in ("nothing", "shift") else np.geomspace(0.2, 20.0, MESH)
    if form.searched == "scale":
        scales = np.concatenate([-scales, scales])
    shifts = np.linspace(-1.5, 1.5, MESH) if form.searched in ("shift", "both") else np.array([0.0])
    # A shift is the zero of s = b (x - shift).
    b = np.repeat(scales, len(shifts))
    c = -b * np.tile(shifts, len(scales))
    values = form.function(b[:, None] * unit + c[:, None])
    centred = values - values.mean(1, keepdims=True)
    power = np.square(centred).sum(1)
    slope = np.where(power > 0, centred @ curve / np.where(power > 0, power, 1.0), 0.0)
    explained = slope * (centred @ curve)
    best = np.argsort(-explained, kind="stable")[:STARTS]
    return [np.array([slope[i], b[i], c[i], curve.mean() - slope[i] * values[i].mean()]) for i in best]


def _refined(form: Form, start: Numbers, unit: Numbers, curve: Numbers) -> Numbers:
    free = {"nothing": [0, 3], "shift": [0, 2, 3], "scale": [0, 1, 3], "both": [0, 1, 2, 3]}[form.searched]
    numbers = start.copy()

    def residual(some: Numbers) -> Numbers:
        numbers[free] = some
        return _residual(numbers, form, unit, curve)

    numbers[free] = least_squares(residual, start[free], method="lm", max_nfev=80).x
    return numbers


def _residual(numbers: Numbers, form: Form, unit: Numbers, curve: Numbers) -> Numbers:
    a, b, c, d = numbers
    distance: Numbers = a * form.function(b * unit + c) + d - curve
    return distance


def _tidied(shape: Shape, a: float, b: float, c: float, d: float) -> tuple[float, float, float, float]:
    """The same function in a normal form: no sign or factor that another number could carry."""
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


def _signed(value: float) -> str:
    return "" if value == 0 else f" {'+' if value > 0 else '-'} {abs(value):.3g}"
