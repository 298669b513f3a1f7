"""DeepONet: coefficients from the input, basis functions from the coordinates.

u_c(x) = sum_k b_ck(u(s_1), .., u(s_m), params) t_k(x) + bias_c,     b and t multilayer perceptrons

Lu, Jin, Pang, Zhang, Karniadakis, Learning nonlinear operators via DeepONet, Nature Machine Intelligence 3, 2021.
Its networks for ordinary equations are small (100 sensors, width 40), so the sizes are those of Lu et al., A
comprehensive and fair comparison of two neural operators, Comput. Methods Appl. Mech. Eng. 393, 2022: width 128 and
128 features; 3 hidden layers in the branch for Burgers' equation (2 in its trunk, tanh) and in the trunk for Darcy
flow (ReLU). Here both networks have 3, and ReLU. The branch reads the history at a lattice of fixed sensors s
(`nn/branch_trunk`) and the trunk is evaluated at the cell centres, so any grid works. Several output fields share the
trunk and split the branch. Different from that comparison's code:
- the branch is fully connected in 2D too, there convolutional on 29² nodes, which ties it to them;
- a periodic axis enters the trunk as cosine and sine of 2 pi x, there of 4 pi x too; the other axes as 2x - 1;
- the sum is divided by sqrt(num_features), so that it starts at unit scale;
- a field is brought to unit scale by one mean and deviation, there by one for each node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.fields import OperatorSignature
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages
from spectrakan.nn.axis import Axis
from spectrakan.nn.branch_trunk import branch_trunk, sensed, trunk_coordinates

SENSORS: dict[int, int] = {1: 100, 2: 32, 3: 12}
"""Sensors along each axis by number of axes: 100 in 1D as in the first paper; near the published 29 in 2D."""
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU}


@settings
class DeepONetConfig:
    """Settings of branch and trunk."""

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


class BranchTrunkOperator(Operator):
    """Branch times trunk; a subclass builds both networks for the widths of `layer_widths`."""

    branch: nn.Module
    trunk: nn.Module
    counts: tuple[int, ...]

    def layer_widths(self, sensors: int, hidden: list[int], num_features: int) -> tuple[list[int], list[int]]:
        """Widths of both networks: sensors and parameters to coefficients, coordinates to basis functions."""
        signature = self.signature
        self.counts = (sensors,) * signature.space_dims
        self.periodic = tuple(kind == "periodic" for kind in self.boundary)
        read = signature.history * signature.in_channels * math.prod(self.counts) + signature.num_params
        branch = [read, *hidden, self.network_out_channels * num_features]
        return branch, [signature.space_dims + sum(self.periodic), *hidden, num_features]

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Coefficients of each sample times the basis on this grid."""
        basis = self.basis(axes, history)
        rows = branch_trunk(self.branch(sensed(history, params, axes, self.counts)), basis)
        # Sums of many products start at unit scale, whatever the number of features.
        output: Tensor = (basis.shape[1] ** -0.5 * rows).unflatten(1, history.shape[2:-1])
        return output

    def basis(self, axes: Sequence[Axis], like: Tensor) -> Tensor:
        """The trunk's functions t_k at the cell centres, `(cells, num_features)`."""
        functions: Tensor = self.trunk(trunk_coordinates(axes, self.periodic, like))
        return functions


class DeepONet(BranchTrunkOperator):
    """Branch times trunk; see the file's equation."""

    name = "deeponet"
    config: DeepONetConfig

    def __init__(self, signature: OperatorSignature, config: DeepONetConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, stages)
        sensors = SENSORS[signature.space_dims] if config.sensors == "auto" else config.sensors
        branch, trunk = self.layer_widths(sensors, [config.width] * config.num_layers, config.num_features)
        self.branch = perceptron(branch, config.activation)
        self.trunk = perceptron(trunk, config.activation, ends_active=True)
        self.bias = nn.Parameter(torch.zeros(self.network_out_channels))

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The product of both networks and the bias of each field."""
        return super()._forward(history, params, axes) + self.bias


def perceptron(widths: Sequence[int], activation: str, *, ends_active: bool = False) -> nn.Sequential:
    """Linear maps of the given widths with a nonlinearity between them, and after the last if `ends_active`."""
    steps: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        steps += [nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
    return nn.Sequential(*(steps if ends_active else steps[:-1]))
