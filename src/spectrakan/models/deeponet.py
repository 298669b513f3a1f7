"""DeepONet: coefficients from the input, basis functions from the place.

u_c(x) = sum_k b_ck(u(s_1), .., u(s_m), params) t_k(x) + bias_c,     b and t multilayer perceptrons

Lu, Jin, Pang, Zhang, Karniadakis, Learning nonlinear operators via DeepONet, Nature Machine Intelligence 3, 2021.
Its networks for ordinary equations are small (100 sensors, width 40), so the sizes are those of Lu et al., A
comprehensive and fair comparison of two neural operators, Comput. Methods Appl. Mech. Eng. 393, 2022: width 128 and
128 features; 3 hidden layers in the branch for Burgers' equation (2 in its trunk, tanh) and in the trunk for Darcy
flow (ReLU). Here both networks have 3, and ReLU. The branch reads the history at a lattice of fixed sensors s
(`nn/sensors`: means over a sensor's cell on finer grids, lines between cell centres on coarser ones) and the trunk
is asked at the cell centres, so any grid will do. Several output fields share the trunk and split the branch.
Different from that comparison's code:
- the branch is fully connected in 2D too, there convolutional on 29² nodes, which ties it to them;
- a periodic axis enters the trunk as cosine and sine of 2 pi x, there of 4 pi x too; the other axes as 2x - 1;
- the sum is divided by sqrt(num_features), so that it starts at unit scale;
- a field is brought to unit scale by one mean and deviation, there by one for each node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import settings
from spectrakan.fields import OperatorSignature
from spectrakan.models.operator import Operator, Predict
from spectrakan.nn.axis import Axis
from spectrakan.nn.branch_trunk import branch_trunk, sensed
from spectrakan.nn.positions import cell_coordinates

Count = Annotated[int, Field(ge=1)]
SENSORS: dict[int, int] = {1: 100, 2: 32, 3: 12}
"""Sensors along each axis by number of axes: 100 in 1D as in the first paper; near the published 29 in 2D."""
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}


@settings
class DeepONetConfig:
    """Choices of branch and trunk."""

    sensors: Count | Literal["auto"] = "auto"
    """Sensors along each axis; "auto": 100 in 1D, 32 in 2D, 12 in 3D."""
    width: Count = 128
    """Hidden width of both networks."""
    num_layers: Count = 3
    """Hidden layers of both networks."""
    num_features: Count = 128
    """Basis functions of the trunk, and coefficients of each output field."""
    activation: Literal["relu", "tanh", "gelu"] = "relu"
    """Nonlinearity of both networks."""
    predict: Predict = "auto"
    """`increment` to the last frame, the frame itself (`direct`), or by the signature."""


class DeepONet(Operator):
    """Branch times trunk; see the file's equation."""

    name = "deeponet"
    config: DeepONetConfig

    def __init__(self, signature: OperatorSignature, config: DeepONetConfig) -> None:
        super().__init__(signature, config, predict=config.predict)
        self.counts = sensor_counts(signature, config.sensors, SENSORS)
        self.periodic = periodic_axes(signature)
        hidden = [config.width] * config.num_layers
        branch, trunk = branch_and_trunk_widths(signature, self.counts, hidden, config.num_features)
        self.branch = perceptron(branch, config.activation)
        self.trunk = perceptron(trunk, config.activation, ends_active=True)
        self.bias = nn.Parameter(torch.zeros(signature.out_channels))

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Coefficients of each sample times the basis on this grid."""
        coefficients = self.branch(sensed(history, params, axes, self.counts))
        # Sums of many products start at unit scale, whatever the number of features.
        scale = self.config.num_features**-0.5
        rows = scale * branch_trunk(coefficients, self.basis(axes, history)) + self.bias
        answer: Tensor = rows.unflatten(1, history.shape[2:-1])
        return answer

    def basis(self, axes: Sequence[Axis], like: Tensor) -> Tensor:
        """The trunk's functions t_k at the cell centres, `(cells, num_features)`."""
        functions: Tensor = self.trunk(trunk_places(axes, self.periodic, like))
        return functions


def perceptron(widths: Sequence[int], activation: str, *, ends_active: bool = False) -> nn.Sequential:
    """Linear maps of the given widths with a nonlinearity between them, and after the last if `ends_active`."""
    steps: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        steps += [nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
    return nn.Sequential(*(steps if ends_active else steps[:-1]))


def branch_and_trunk_widths(
    signature: OperatorSignature, counts: tuple[int, ...], hidden: list[int], num_features: int
) -> tuple[list[int], list[int]]:
    """Widths of both networks: sensors and parameters to coefficients, coordinates to basis functions."""
    sensed_numbers = signature.history * signature.in_channels * math.prod(counts) + signature.num_params
    places = signature.space_dims + sum(periodic_axes(signature))
    branch = [sensed_numbers, *hidden, signature.out_channels * num_features]
    return branch, [places, *hidden, num_features]


def sensor_counts(signature: OperatorSignature, sensors: int | str, published: dict[int, int]) -> tuple[int, ...]:
    """Sensors along each axis; "auto" looks them up by number of axes."""
    count = published[signature.space_dims] if isinstance(sensors, str) else sensors
    return (count,) * signature.space_dims


def periodic_axes(signature: OperatorSignature) -> tuple[bool, ...]:
    """Which axes close on themselves, as far as the signature knows."""
    return tuple(kind == "periodic" for kind in signature.boundary) or (False,) * signature.space_dims


def trunk_places(axes: Sequence[Axis], periodic: Sequence[bool], like: Tensor) -> Tensor:
    """2x - 1, or cosine and sine of 2 pi x where the axis is periodic: all in [-1, 1], `(cells, places)`."""
    columns: list[Tensor] = []
    for x, wraps in zip(cell_coordinates(axes, like).unbind(1), periodic, strict=True):
        angle = 2 * math.pi * x
        columns += [angle.cos(), angle.sin()] if wraps else [2 * x - 1]
    return torch.stack(columns, dim=1)
