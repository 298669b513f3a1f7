"""How far every quantity of a model can move while the input moves in sup-norm balls.

In the affine program (`program`) every quantity x is x_0 + J d + sum_k G_k e_k, with d the input's change, |d| <= r,
and e_k in [low_k, high_k] what the linear part of node k leaves (`rules`). With m_k the middles of these intervals and
w_k their halves, x moves by
    sum_k G_k m_k,  up to  r sum_i |J_i| + sum_k |G_k| w_k  in both directions.
Inputs of nodes: J by columns (one run an input of the model), the middles by one run, and the sum of |G_k| w_k by
direct maps (`direct`): what node j leaves moves its output by |l_j| R_j + w_j and the input of node m by
    R_m = sum_j |M_jm| (|l_j| R_j + w_j).
Targets: rows of J and of all G_k, by backward passes. Between two inputs the same holds with rates. Linear parts are
chosen before, for motions that a few columns let expect. Sums are widened by `ROUNDING`, far above the rounding errors
of float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.theory.direct import DirectMaps, batch_of, columns
from spectrakan.theory.norms import ROUNDING, nan_to_inf
from spectrakan.theory.program import Program
from spectrakan.theory.rules import Motion, Rest

FEW = 256
"""Columns that motions are expected from."""


@dataclass(frozen=True)
class Reached:
    """A quantity's motion, what its rows move by beyond J d, `(units, 2)` for changes and rates, and J where kept."""

    motion: Motion
    beyond: Tensor
    jacobian: Tensor | None


class Reach:
    """Motions of a program in one ball, once its nodes are bounded (`reach_all`)."""

    def __init__(self, program: Program, radius: float) -> None:
        self.program, self.radius = program, radius
        self.motions: list[list[Motion]] = []
        self._rests: list[Rest] = []
        expected = gains(program, max(1, program.centre.numel() // FEW))
        for rule, inputs in zip(program.rules, expected, strict=True):
            rule.relax(*(radius * each for each in inputs))
        self._gains = gains(program)

    def bound(self, number: int, rests: Sequence[Tensor]) -> Tensor:
        """Bound a node whose inputs' rests are `(units, 2)`; gives what leaves the node, `(units, 2)`."""
        program, rule = self.program, self.program.rules[number]
        middles = {place: _middle(rest) for place, rest in enumerate(self._rests)}
        program.values(program.centre, {place: each for place, each in middles.items() if bool(each.any())})
        inputs, spreads = [], list[Sequence[Tensor]]()
        for place, centre in enumerate(rule.centres):
            widths, rates = self._by_shape(number, place, rests[place])
            gain, value = self._gains[number][place], program.calls[number][place].detach()
            reach = nan_to_inf((self.radius * gain + widths) * (1 + ROUNDING) + ROUNDING * (value - centre).abs())
            inputs.append(Motion(centre, -nan_to_inf(reach - value), nan_to_inf(value + reach), gain + rates))
            spreads.append((widths, rates))
        rest = rule.rest(*inputs)
        self.motions.append(inputs)
        self._rests.append(rest)
        left = [rule.spread(*each) for each in zip(*spreads, strict=True)]
        total = left[0] + (rest.high - rest.low) / 2, left[1] + rest.rate
        dim = program.node_dims[number][-1]
        return nan_to_inf(torch.stack([each.movedim(dim, 0).flatten() for each in total], dim=1))

    def _by_shape(self, number: int, place: int, rests: Tensor) -> Sequence[Tensor]:
        """Rests `(units, 2)` in the shape of a node's input, whose batch has one sample."""
        dim, shape = self.program.node_dims[number][place], self.program.rules[number].centres[place].shape
        moved = [size for each, size in enumerate(shape) if each != dim]
        return [part.view(1, *moved).movedim(0, dim) for part in rests.unbind(1)]

    def target(self, name: str, *, keep: bool = False) -> Reached:
        """The motion of a quantity of the run; `keep` keeps its Jacobian."""
        program, centre, dim = self.program, self.program.targets[name], self.program.target_dims[name]
        leaves, batch = self._leaves(), batch_of(program)
        value = program.values(leaves[0], dict(enumerate(leaves[1:])))[name]
        units, shape = centre.numel(), [size for place, size in enumerate(value.shape) if place != dim]
        # Change by the middles, then widths and rates without the linear part, then the linear part.
        found = torch.zeros(units, 4, dtype=torch.float64)
        jacobian = torch.zeros(units, program.centre.numel(), dtype=torch.float64) if keep else None
        for first in range(0, units, batch):
            rows = torch.arange(first, min(first + batch, units))
            cotangent = torch.zeros(batch, units, dtype=torch.float64)
            cotangent[torch.arange(len(rows)), rows] = 1.0
            cotangent = cotangent.view(batch, *shape).movedim(0, dim)
            gradients = torch.autograd.grad(value, leaves, cotangent, retain_graph=True, allow_unused=True)
            if gradients[0] is not None:
                own = gradients[0].flatten(1)[: len(rows)]
                found[rows, 3] = own.abs().sum(1)
                if jacobian is not None:
                    jacobian[rows] = own
            for gradient, rest, dims in zip(gradients[1:], self._rests, program.node_dims, strict=False):
                if gradient is not None:
                    flat = gradient.movedim(dims[-1], 0).flatten(1)[: len(rows)]
                    parts = rest.low, rest.high, rest.rate, _middle(rest)
                    low, high, rate, middle = (part.movedim(dims[-1], 0).flatten() for part in parts)
                    found[rows, 0] += flat @ middle
                    found[rows, 1] += flat.abs() @ ((high - low) / 2)
                    found[rows, 2] += flat.abs() @ rate
        found = nan_to_inf(found)
        linear, beyond = found[:, 3] * (1 + ROUNDING), found[:, 1:3] * (1 + ROUNDING)
        shift, width = found[:, 0], self.radius * linear + beyond[:, 0] + ROUNDING * found[:, 0].abs()
        ends = -nan_to_inf(width - shift), nan_to_inf(width + shift), linear + beyond[:, 1]
        low, high, rate = (nan_to_inf(part).view(1, *shape).movedim(0, dim) for part in ends)
        beyond = torch.stack([nan_to_inf(beyond[:, 0] + shift.abs()), beyond[:, 1]], dim=1)
        return Reached(Motion(centre, centre + low, centre + high, rate), beyond, jacobian)

    def _leaves(self) -> list[Tensor]:
        """Inputs, and errors of all nodes, for a batch of rows, that gradients are taken of."""
        centre, batch = self.program.centre.detach(), batch_of(self.program)
        leaves = [centre.expand(batch, *centre.shape[1:]).clone()]
        for rule, dims in zip(self.program.rules, self.program.node_dims, strict=True):
            shape = list(rule.out.shape)
            shape[dims[-1]] = batch
            leaves.append(torch.zeros(shape, dtype=torch.float64))
        return [leaf.requires_grad_() for leaf in leaves]


def reach_all(make: Callable[[], Program], radii: Sequence[float], space: Sequence[int] = ()) -> list[Reach]:
    """All nodes bounded in balls of several radii; direct maps do not depend on the radius and serve all."""
    found = [Reach(make(), radius) for radius in radii]
    program = make()
    maps = DirectMaps(program, space)
    rests = [[torch.zeros(each.numel(), 2 * len(radii), dtype=torch.float64) for each in rule.centres] for rule in program.rules]
    for number in range(len(program.rules)):
        given = [part.unflatten(1, (len(radii), 2)).unbind(1) for part in rests[number]]
        left = [reach.bound(number, each) for reach, each in zip(found, zip(*given, strict=True), strict=True)]
        for (later, place), sizes in maps.spread(number, torch.cat(left, dim=1)).items():
            rests[later][place] += nan_to_inf(sizes * (1 + ROUNDING))
    return found


def _middle(rest: Rest) -> Tensor:
    """The middle of the rest's interval, zero where it has no finite one."""
    return torch.nan_to_num((rest.low + rest.high) / 2, nan=0.0, posinf=0.0, neginf=0.0)


def gains(program: Program, every: int = 1) -> list[list[Tensor]]:
    """sum_i |J_i| of every input of every node, in its shape; from every n-th column and scaled up, an estimate."""
    total = [[torch.zeros(each.numel(), dtype=torch.float64) for each in rule.centres] for rule in program.rules]
    for _, changes in columns(program, every):
        for sums, change in zip(total, changes, strict=True):
            for each, value in zip(sums, change, strict=True):
                each += value.abs().sum(0)
    # Columns are differences of values, with the rounding errors of these.
    noise = program.centre.numel() * torch.finfo(torch.float64).eps
    shaped: list[list[Tensor]] = []
    for rule, dims, sums in zip(program.rules, program.node_dims, total, strict=True):
        shaped.append([])
        for centre, dim, each in zip(rule.centres, dims, sums, strict=False):
            rest = [size for place, size in enumerate(centre.shape) if place != dim]
            gain = (each * every).view(1, *rest).movedim(0, dim)
            shaped[-1].append(nan_to_inf(gain * (1 + ROUNDING) + noise * centre.abs().amax()))
    return shaped
