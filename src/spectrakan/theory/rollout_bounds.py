"""How far an initial perturbation can grow in a rollout: bounds of every frame, with attacks beside them.

The rollout of K frames is one program (`program`), so that what cancels between frames cancels in the bound; products
of the constants of single steps would grow by their K-th power.
"""

from collections.abc import Mapping
from copy import deepcopy

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.nn.kan import KANLayer
from spectrakan.theory.attack import AttackSettings, attack, largest
from spectrakan.theory.certificate import Entry
from spectrakan.theory.program import Program
from spectrakan.theory.reach import Reach


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
    """Bounds of `steps` frames around one physical window `(1, history, *space, field)`, in normalised units.

    Each is of the change of one frame over the radius.

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
    exact = deepcopy(model).cpu().double().eval().requires_grad_(False)
    centre, given = exact.normalized(inputs.cpu().double(), None if params is None else params.cpu().double())
    axes = exact.axes(centre, grid)

    def run(history: Tensor) -> Mapping[str, Tensor]:
        fixed = None if given is None else given.expand(history.shape[0], -1)
        frames = {}
        for step in range(steps):
            frame = exact.postprocess(exact._forward(exact.decayed(history), fixed, axes), history, axes)
            frames[str(step)] = frame
            following = exact.input_units.normalize(exact.output_units.denormalize(frame))
            history = torch.cat([history[:, 1:], following[:, None]], dim=1)
        return frames

    reach = Reach(Program(run, centre, [each for each in exact.modules() if isinstance(each, KANLayer)]), radius)
    growth = []
    for name in map(str, range(steps)):
        found = attack(
            lambda history, name=name: run(history)[name], centre, radius, largest, config or AttackSettings()
        )
        bound = float(reach.target(name).motion.reach.amax()) / radius
        growth.append(Entry(bound, "certified", f"change of frame {name}", found.change))
    return growth
