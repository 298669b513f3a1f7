"""All bounds of one model around one input: token, modulation, prediction, the theorem's constants, and rollouts."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.theory.attack import AttackSettings, attack, largest
from spectrakan.theory.certificate import Entry
from spectrakan.theory.kan_bounds import layers_of
from spectrakan.theory.parts import model_run
from spectrakan.theory.program import Program
from spectrakan.theory.reach import Reach
from spectrakan.theory.rules import Pool
from spectrakan.theory.theorem import Constants, certified_constants

MOST_ROWS = 1 << 19
"""Most numbers that nonlinear operations of one sample take for which all bounds are computed."""
QUANTITIES: tuple[str, ...] = ("token", "modulation", "prediction")
Model = TypeVar("Model", bound=Operator)


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
    model: SpectraKAN,
    history: Tensor,
    params: Tensor | None,
    axes: Sequence[Axis],
    radii: Sequence[float],
    tell: Callable[[float], None] = lambda share: None,
) -> list[SampleBounds]:
    """Bounds around one normalised input `(1, history, *space, field)` for every radius; the model is in float64.

    `tell` is called with the share of the work that is done. A model with more than `MOST_ROWS` numbers in its
    nonlinear operations has bounds of its token alone.
    """
    rules = model_program(model, history, params, axes).rules
    alone = sum(centre.numel() for rule in rules for centre in rule.centres) > MOST_ROWS
    names, found, done = ("token",) if alone else QUANTITIES, list[SampleBounds](), 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        tell(min(1.0, done / (len(radii) * numbers)))

    for radius in radii:
        program = model_program(model, history, params, axes, token_alone=alone)
        numbers = sum(centre.numel() for rule in program.rules for centre in rule.centres)
        found.append(_bounds(model, Reach(program, radius, count), names))
    return found


def _bounds(model: SpectraKAN, reach: Reach, names: Sequence[str]) -> SampleBounds:
    """All bounds of one ball."""
    found = {name: reach.target(name, keep=name != "prediction") for name in ("summary", *names)}
    change, rates = dict[str, float](), dict[str, float]()
    for name, motion in found.items():
        sizes = (motion.reach.amax(), motion.rate.amax()) if name == "prediction" else motion.sizes()
        change[name], rates[name] = float(sizes[0]) / reach.radius, float(sizes[1])
    pooled = next((place for place, rule in enumerate(reach.program.rules) if isinstance(rule, Pool)), None)
    constants = None
    if pooled is not None and model.gml is not None:
        motions = found["summary"], found["token"], reach.motions[pooled][1]
        constants = certified_constants(model._need_token().network, model.gml, rates["summary"], *motions)
        rates["modulation"] = min(rates["modulation"], constants.covariance())
    change = {name: min(value, rates[name]) for name, value in change.items()}
    summary = found["summary"]
    return SampleBounds(rates, change, torch.stack([summary.low, summary.high])[:, 0], constants)


def in_float64(
    model: Model, inputs: Tensor, params: Tensor | None, grid: Grid | None
) -> tuple[Model, Tensor, Tensor | None, tuple[Axis, ...]]:
    """A copy of a model with exactly its weights, and physical inputs and parameters in normalised units."""
    exact = deepcopy(model).cpu().double().eval().requires_grad_(False)
    history, given = exact.normalized(inputs.cpu().double(), None if params is None else params.cpu().double())
    return exact, history, given, exact.axes(history, grid)


def model_program(
    model: SpectraKAN, history: Tensor, params: Tensor | None, axes: Sequence[Axis], *, token_alone: bool = False
) -> Program:
    """The program of all quantities of the model, or up to its token."""
    return Program(model_run(model, params, axes, token_alone=token_alone), history, layers_of(model))


def rollout_growth(
    model: Operator,
    inputs: Tensor,
    steps: int,
    radius: float,
    *,
    params: Tensor | None = None,
    grid: Grid | None = None,
    config: AttackSettings | None = None,
) -> list[Entry]:
    """How far a perturbation of one physical window `(1, history, *space, field)` can grow in a rollout.

    For each of `steps` frames a bound of its change over the radius, in normalised units, with an attack beside it.
    The rollout is one program, so that what cancels between frames cancels in the bound; products of the constants
    of single steps would grow by their power.

    >>> from spectrakan.fields import OperatorSignature
    >>> from spectrakan.models import build_model
    >>> signature = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    >>> model = build_model("spectrakan", signature, width=4, num_modes=2, num_layers=2)
    >>> found = rollout_growth(model, torch.randn(1, 1, 8, 1), 2, 0.001)
    >>> all(each.attacked <= each.value for each in found)
    True
    """
    if not model.signature.evolves or inputs.shape[0] != 1 or steps < 1:
        raise ConfigError(
            "the growth of a perturbation needs one window, at least one step and fields that evolve, got "
            f"{inputs.shape[0]} windows and {steps} steps of '{model.name}'"
        )
    exact, centre, given, axes = in_float64(model, inputs, params, grid)

    def run(history: Tensor) -> Mapping[str, Tensor]:
        fixed = None if given is None else given.expand(history.shape[0], -1)
        frames = {}
        for step in range(steps):
            frame = exact.postprocess(exact._forward(exact.decayed(history), fixed, axes), history, axes)
            frames[str(step)] = frame
            following = exact.input_units.normalize(exact.output_units.denormalize(frame))
            history = torch.cat([history[:, 1:], following[:, None]], dim=1)
        return frames

    reach = Reach(Program(run, centre, layers_of(exact)), radius)

    def entry(name: str) -> Entry:
        found = attack(lambda history: run(history)[name], centre, radius, largest, config or AttackSettings())
        bound = float(reach.target(name).reach.amax()) / radius
        return Entry(bound, "certified", f"change of frame {name}", found.change)

    return [entry(str(step)) for step in range(steps)]
