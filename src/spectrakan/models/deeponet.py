"""DeepONet: coefficients from the input, basis functions from the coordinates.

u_c(x) = sum_k b_ck(u(s_1), .., u(s_m), params) t_k(x) / sqrt(K) + bias_c,     b and t multilayer perceptrons

Lu, Jin, Pang, Zhang, Karniadakis, Learning nonlinear operators via DeepONet, Nature Machine Intelligence 3, 2021.
Width 128, 128 features, 3 hidden layers and tanh are those of Lu et al., A comprehensive and fair comparison of two
neural operators, Comput. Methods Appl. Mech. Eng. 393, 2022. The branch reads the history at a lattice of fixed
sensors (`read_sensors`) and the trunk is evaluated at the cell centres, so any grid works; several fields share the
trunk and split the branch. The sum is divided by sqrt(K), so that it starts at unit scale.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import cell_coordinates, read_sensors
from spectrakan.nn.execution import force_fp32


@settings
class DeepONetConfig:
    """Settings of branch and trunk."""

    sensors: Count | Literal["auto"] = "auto"
    """Sensors along each axis; "auto": by the number of axes (`auto_sensors`)."""
    width: Count = 128
    """Hidden width of both networks."""
    num_layers: Count = 3
    """Hidden layers of both networks."""
    num_features: Count = 128
    """Basis functions of the trunk, and coefficients of each output field."""


class DeepONet(Operator):
    """Branch times trunk; see the file's equation."""

    name = "deeponet"
    config: DeepONetConfig
    auto_sensors: ClassVar[dict[int, int]] = {1: 100, 2: 32, 3: 12}
    has_bias: ClassVar[bool] = True

    def _build(self) -> None:
        signature, config = self.signature, self.config
        dims, hidden, features = signature.space_dims, [config.width] * config.num_layers, config.num_features
        self.counts = (self.auto_sensors[dims] if config.sensors == "auto" else config.sensors,) * dims
        self.periodic = tuple(kind == "periodic" for kind in self.boundary)
        read = signature.history * signature.in_channels * math.prod(self.counts) + signature.num_params
        branch = [read, *hidden, self.network_out_channels * features]
        self.branch, self.trunk = self._networks(branch, [dims + sum(self.periodic), *hidden, features])
        self.bias = nn.Parameter(torch.zeros(self.network_out_channels)) if self.has_bias else None

    def _networks(self, branch: Sequence[int], trunk: Sequence[int]) -> tuple[nn.Module, nn.Module]:
        """Networks of these widths: inputs to coefficients, coordinates to basis functions."""
        return perceptron(branch), nn.Sequential(perceptron(trunk), nn.Tanh())

    @force_fp32
    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Coefficients of each sample times the basis on this grid, in full precision."""
        # 2x - 1, or cosine and sine of 2 pi x where the axis is periodic: all in [-1, 1], `(cells, coordinates)`.
        columns: list[Tensor] = []
        for x, wraps in zip(cell_coordinates(axes, history).unbind(1), self.periodic, strict=True):
            angle = 2 * math.pi * x
            columns += [angle.cos(), angle.sin()] if wraps else [2 * x - 1]
        basis = self.trunk(torch.stack(columns, dim=1))
        coefficients = self.branch(self._sensed(history, params, axes)).unflatten(1, (-1, basis.shape[1]))
        rows = (coefficients @ basis.T).transpose(1, 2) * basis.shape[1] ** -0.5
        output: Tensor = rows.unflatten(1, history.shape[2:-1])
        return output if self.bias is None else output + self.bias

    def _sensed(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The history at the sensors, flattened, and the parameters behind it, `(batch, inputs)`."""
        values = read_sensors(history, axes, self.counts).flatten(1)
        return values if params is None else torch.cat([values, params], dim=1)


def perceptron(widths: Sequence[int]) -> nn.Sequential:
    """Linear maps of the given widths with tanh between them."""
    steps: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        steps += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*steps[:-1])
