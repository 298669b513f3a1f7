"""All bounds of one model around one input: token, modulation, prediction, and the theorem's constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.kan import KANLayer
from spectrakan.theory.norms import sup_to_two
from spectrakan.theory.parts import model_run
from spectrakan.theory.program import Program
from spectrakan.theory.reach import Reach, Reached
from spectrakan.theory.rules import Motion, Pool
from spectrakan.theory.theorem import Constants, certified_constants

MOST_ROWS = 1 << 19
"""Most numbers that nonlinear operations of one sample take for which all bounds are computed."""
QUANTITIES = ("token", "modulation", "prediction")


@dataclass(frozen=True)
class SampleBounds:
    """Certified numbers around one input; `change` counts from the input itself, `rates` between any two.

    By quantity: Euclidean norms of token and modulation, largest entry of the prediction, over the sup norm.
    `summary` `(2, d_0)` are ends of the box of the token's inputs.
    """

    rates: dict[str, float]
    change: dict[str, float]
    summary: Tensor
    constants: Constants | None = None
    """Of the theorem, where the model has attention."""


def bound_sample(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], radii: Sequence[float]
) -> list[SampleBounds]:
    """Bounds around one normalised input `(1, history, *space, field)` for every radius; the model is in float64.

    A model with more than `MOST_ROWS` numbers in its nonlinear operations has bounds of its token alone.
    """
    program = model_program(model, history, params, axes)
    names: tuple[str, ...] = QUANTITIES
    if sum(centre.numel() for rule in program.rules for centre in rule.centres) > MOST_ROWS:
        names, program = ("token",), model_program(model, history, params, axes, token_alone=True)
    reach = Reach(program, radii)
    found = {name: reach.target(name, keep=name != "prediction") for name in ("summary", *names)}
    pooled = next((place for place, rule in enumerate(program.rules) if isinstance(rule, Pool)), None)
    results = []
    for place, radius in enumerate(radii):
        rates, change = (
            {name: bound(found[name], place, radius) for name in names if name != "prediction"}
            for bound in (_euclidean_rate, _euclidean_change)
        )
        constants = None
        if pooled is not None and model.gml is not None:
            motions = [found["summary"].motion, found["token"].motion, reach.motions[pooled][1]]
            rate = _euclidean_rate(found["summary"], place, radius)
            summary, token, features = (_at(motion, place) for motion in motions)
            constants = certified_constants(model._need_token().network, model.gml, rate, summary, token, features)
            rates["modulation"] = min(rates["modulation"], constants.covariance())
        if "prediction" in names:
            motion = _at(found["prediction"].motion, place)
            rates["prediction"] = float(motion.rate.amax())
            change["prediction"] = float(motion.reach.amax()) / radius
        change = {name: min(value, rates[name]) for name, value in change.items()}
        box = torch.stack(_at(found["summary"].motion, place).interval())[:, 0]
        results.append(SampleBounds(rates, change, box, constants))
    return results


def model_program(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], *, token_alone: bool = False
) -> Program:
    """The program of all quantities of the model, or up to its token."""
    layers = [layer for layer in model.modules() if isinstance(layer, KANLayer)]
    return Program(model_run(model, params, axes, token_alone=token_alone), history, layers)


def _at(motion: Motion, place: int) -> Motion:
    """A vector's, an attention's or a prediction's motion at one radius; their batch comes first."""
    return Motion(motion.centre, motion.reach[place : place + 1], motion.rate[place : place + 1])


def _euclidean_rate(found: Reached, place: int, _: float) -> float:
    count = found.beyond.shape[1] // 2
    return _euclidean(found, found.beyond[:, count + place], found.motion.rate[place])


def _euclidean_change(found: Reached, place: int, radius: float) -> float:
    return _euclidean(found, found.beyond[:, place] / radius, found.motion.reach[place] / radius)


def _euclidean(found: Reached, beyond: Tensor, rows: Tensor) -> float:
    """The norm of the linear part from sup to Euclid plus that of the rest, or the norm of the rows' bounds."""
    by_rows = float(rows.norm())
    return by_rows if found.jacobian is None else min(float(sup_to_two(found.jacobian) + beyond.norm()), by_rows)
