"""DeepOKAN: branch and trunk are Kolmogorov-Arnold networks of Gaussian bumps.

u_c(x) = sum_k b_ck(u(s_1), .., u(s_m), params) t_k(x) / sqrt(K),     b and t radial KANs (`nn/radial_kan`), no bias

Abueidda, Pantidis, Mobasher, DeepOKAN: Deep operator network based on Kolmogorov Arnold networks for mechanics
problems, arXiv 2405.19143, 2024. Defaults are those of its first example; the number of sensors, where a field is the
input, is ours. Different from the published code:
- several fields share the trunk and split the branch, there one scalar field is the output;
- the branch reads the history at a lattice of fixed sensors (`nn/sensors`: means over a sensor's cell on finer grids,
  lines between cell centres on coarser ones), so any grid will do; there a gridded input is flattened, which ties it
  to one resolution;
- the sum over the K features is divided by sqrt(K), and weights start so that each layer's output has unit variance:
  answers and gradients start at unit scale whatever the sizes;
- the range of the branch's first centres is taken from the training data by `prepare`, there it is set by hand;
- a periodic axis enters the trunk as cosine and sine of 2 pi x.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.deeponet import branch_and_trunk_widths, periodic_axes, sensor_counts, trunk_places
from spectrakan.models.operator import Operator, Predict
from spectrakan.nn.axis import Axis
from spectrakan.nn.branch_trunk import branch_trunk, sensed
from spectrakan.nn.precision import unmixed
from spectrakan.nn.radial_kan import RadialKAN

Count = Annotated[int, Field(ge=1)]
SENSORS: dict[int, int] = {1: 64, 2: 16, 3: 8}
"""Sensors along each axis by number of axes; each feeds `num_centres` bumps, so they are fewer than DeepONet's."""
UNIT_SCALE_SPAN = (-3.0, 3.0)
"""Where the branch's inputs lie before `prepare` knows better."""


@settings
class DeepOKANConfig:
    """Choices of branch and trunk; the defaults are those of the paper's first example."""

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
    predict: Predict = "auto"
    """`increment` to the last frame, the frame itself (`direct`), or by the signature."""


class DeepOKAN(Operator):
    """Branch times trunk; see the file's equation."""

    name = "deepokan"
    config: DeepOKANConfig

    def __init__(self, signature: OperatorSignature, config: DeepOKANConfig) -> None:
        super().__init__(signature, config, predict=config.predict)
        self.counts = sensor_counts(signature, config.sensors, SENSORS)
        self.periodic = periodic_axes(signature)
        hidden = [config.width] * config.num_layers
        branch, trunk = branch_and_trunk_widths(signature, self.counts, hidden, config.num_features)
        count, fixed = config.num_centres, config.fixed_centres
        self.branch = RadialKAN(branch, count, span=UNIT_SCALE_SPAN, fixed=fixed)
        self.trunk = RadialKAN(trunk, count, fixed=fixed)

    @unmixed
    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Coefficients of each sample times the basis on this grid."""
        coefficients = self.branch(sensed(history, params, axes, self.counts))
        basis = self.trunk(trunk_places(axes, self.periodic, history))
        # Sums of many products start at unit scale, whatever the number of features.
        rows = self.config.num_features**-0.5 * branch_trunk(coefficients, basis)
        answer: Tensor = rows.unflatten(1, history.shape[2:-1])
        return answer

    @torch.no_grad()
    def prepare(self, windows: Iterable[Window]) -> None:
        """Size of increments, and the range of the branch's inputs."""
        windows = list(windows)
        super().prepare(windows)
        extremes = []
        for window in windows:
            history, params = self.normalized(window.inputs, window.params)
            seen = sensed(history, params, self.axes(history, window.grid), self.counts)
            extremes += [seen.min(), seen.max()]
        if extremes:
            self.branch.fit_span(torch.stack(extremes))
