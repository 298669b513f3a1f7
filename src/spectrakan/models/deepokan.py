"""DeepOKAN: branch and trunk are Kolmogorov-Arnold networks of Gaussian bumps.

u_c(x) = sum_k b_ck(u(s_1), .., u(s_m), params) t_k(x) / sqrt(K),     b and t radial KANs (`nn/radial_kan`), no bias

Abueidda, Pantidis, Mobasher, DeepOKAN: Deep operator network based on Kolmogorov Arnold networks for mechanics
problems, arXiv 2405.19143, 2024. Defaults are those of its first example; the number of sensors, where a field is the
input, is ours. Different from the published code:
- several fields share the trunk and split the branch, there one scalar field is the output;
- the branch reads the history at a lattice of fixed sensors (`nn/branch_trunk`), so any grid works; there a gridded
  input is flattened, which ties it to one resolution;
- the sum over the K features is divided by sqrt(K), and weights start so that each layer's output has unit variance:
  outputs and gradients start at unit scale whatever the sizes;
- the range of the branch's first centres is fitted to the training data, there it is set by hand;
- a periodic axis enters the trunk as cosine and sine of 2 pi x.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import Count, settings
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.deeponet import BranchTrunkOperator
from spectrakan.models.stages import Stages
from spectrakan.nn.axis import Axis
from spectrakan.nn.branch_trunk import sensed
from spectrakan.nn.execution import force_fp32
from spectrakan.nn.radial_kan import RadialKAN

SENSORS: dict[int, int] = {1: 64, 2: 16, 3: 8}
"""Sensors along each axis by number of axes; each feeds `num_centres` bumps, so they are fewer than DeepONet's."""
UNIT_SCALE_SPAN = (-3.0, 3.0)
"""Range of the branch's inputs before it is fitted."""


@settings
class DeepOKANConfig:
    """Settings of branch and trunk; the defaults are those of the paper's first example."""

    sensors: Count | Literal["auto"] = "auto"
    """Sensors along each axis; "auto": 64 in 1D, 16 in 2D, 8 in 3D."""
    width: Count = 50
    """Hidden width of both networks."""
    num_layers: Count = 2
    """Hidden layers of both networks."""
    num_features: Count = 40
    """Basis functions of the trunk, and coefficients of each output field (HD)."""
    num_centres: Annotated[int, Field(ge=2)] = 30
    """Gaussian bumps of each edge function."""
    fixed_centres: bool = False
    """Whether the centres stay where they start."""


class DeepOKAN(BranchTrunkOperator):
    """Branch times trunk; see the file's equation."""

    name = "deepokan"
    config: DeepOKANConfig
    branch: RadialKAN

    def __init__(self, signature: OperatorSignature, config: DeepOKANConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, stages)
        sensors = SENSORS[signature.space_dims] if config.sensors == "auto" else config.sensors
        branch, trunk = self.layer_widths(sensors, [config.width] * config.num_layers, config.num_features)
        count, fixed = config.num_centres, config.fixed_centres
        self.branch = RadialKAN(branch, count, span=UNIT_SCALE_SPAN, fixed=fixed)
        self.trunk = RadialKAN(trunk, count, fixed=fixed)

    @force_fp32
    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The product of both networks, in full precision."""
        return super()._forward(history, params, axes)

    def _fit_network(self, windows: Iterable[Window]) -> None:
        """The range of the branch's inputs."""
        extremes = []
        for window in windows:
            history, params = self.network_inputs(window.inputs, window.params)
            read = sensed(history, params, self.axes(history, window.grid), self.counts)
            extremes += [read.min(), read.max()]
        self.branch.fit_span(torch.stack(extremes))
