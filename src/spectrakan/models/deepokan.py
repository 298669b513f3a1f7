"""DeepOKAN: branch and trunk are Kolmogorov-Arnold networks of Gaussian bumps.

u_c(x) = sum_k b_ck(u(s_1), .., u(s_m), params) t_k(x) / sqrt(K),     b and t radial KANs, no bias

Abueidda, Pantidis, Mobasher, DeepOKAN: Deep operator network based on Kolmogorov Arnold networks for mechanics
problems, arXiv 2405.19143, 2024. Defaults are those of its first example; the number of sensors, where a field is the
input, is ours. Different from the published code:
- several fields share the trunk and split the branch, there one scalar field is the output;
- the branch reads the history at a lattice of fixed sensors (`read_sensors`), so any grid works; there a gridded
  input is flattened, which ties it to one resolution;
- the sum over the K features is divided by sqrt(K), and weights start so that each layer's output has unit variance:
  outputs and gradients start at unit scale whatever the sizes;
- the range of the branch's first centres is fitted to the training data, there it is set by hand;
- a periodic axis enters the trunk as cosine and sine of 2 pi x.

In a radial KAN the function of an edge is a sum of Gaussian bumps,
    y_j = sum_i sum_r W_jir exp(-((x_i - c_r) / h)^2),     h = (c_max - c_min) / (count - 1) at the start,
the centres c shared by all inputs of a layer; between layers a tanh brings the features into [-1, 1], where the
next layer's centres lie. Shapes: `(..., in)` -> `(..., out)`.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.fields import Window
from spectrakan.models.deeponet import DeepONet, DeepONetConfig
from spectrakan.nn.execution import force_fp32


class RadialKANLayer(nn.Module):
    """One layer of edge functions; see the file's equation. The centres learn; h stays."""

    bump_width: Tensor

    def __init__(self, in_features: int, out_features: int, num_centres: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.zeros(num_centres))
        self.register_buffer("bump_width", torch.ones(()))
        self.spread(-1.0, 1.0)
        # About 1.25 neighbouring bumps differ from zero at a time, in mean square: the output starts at unit scale.
        self.weight = nn.Parameter(
            torch.randn(out_features, in_features * num_centres) * (1.25 * in_features) ** -0.5
        )

    @torch.no_grad()
    def spread(self, low: float, high: float) -> None:
        """Put the centres evenly on [low, high] and set the bumps' width to their spacing."""
        count = self.centres.shape[0]
        self.centres.copy_(torch.linspace(low, high, count))
        self.bump_width.fill_((high - low) / (count - 1))

    def forward(self, x: Tensor) -> Tensor:
        """All edges at once as one matrix product."""
        bumps = (-((x[..., None] - self.centres) / self.bump_width).square()).exp()
        return nn.functional.linear(bumps.flatten(-2), self.weight)


class RadialKAN(nn.Module):
    """Layers of the given widths with tanh between them; the first one's centres lie on `span`."""

    def __init__(self, widths: Sequence[int], num_centres: int, *, span: tuple[float, float] = (-1.0, 1.0)) -> None:
        super().__init__()
        layers = [RadialKANLayer(inputs, outputs, num_centres) for inputs, outputs in pairwise(widths)]
        layers[0].spread(*span)
        self.layers = nn.ModuleList(layers)

    @force_fp32
    def forward(self, x: Tensor) -> Tensor:
        """`(..., widths[0])` -> `(..., widths[-1])`."""
        first, *rest = self.layers
        x = first(x)
        for layer in rest:
            x = layer(x.tanh())
        return x

    def fit_span(self, samples: Tensor) -> None:
        """Spread the first layer's centres over the range of samples of its input."""
        low, high = float(samples.min()), float(samples.max())
        first = self.layers[0]
        if high > low and isinstance(first, RadialKANLayer):
            first.spread(low, high)


@settings
class DeepOKANConfig(DeepONetConfig):
    """Settings of branch and trunk; the defaults are those of the paper's first example."""

    width: Count = 50
    """Hidden width of both networks."""
    num_layers: Count = 2
    """Hidden layers of both networks."""
    num_features: Count = 40
    """Basis functions of the trunk, and coefficients of each output field (HD)."""
    num_centres: Annotated[int, Field(ge=2)] = 30
    """Gaussian bumps of each edge function."""


class DeepOKAN(DeepONet):
    """Branch times trunk; see the file's equation."""

    name = "deepokan"
    config: DeepOKANConfig
    auto_sensors: ClassVar[dict[int, int]] = {1: 64, 2: 16, 3: 8}
    has_bias = False

    def _networks(self, branch: Sequence[int], trunk: Sequence[int]) -> tuple[nn.Module, nn.Module]:
        count = self.config.num_centres
        # The branch's inputs are at unit scale; their range is fitted later.
        return RadialKAN(branch, count, span=(-3.0, 3.0)), RadialKAN(trunk, count)

    def _fit_network(self, windows: Iterable[Window]) -> None:
        """The range of the branch's inputs."""
        extremes: list[Tensor] = []
        for window in windows:
            history, params = self.network_inputs(window.inputs, window.params)
            extremes += self._sensed(history, params, self.axes(history, window.grid)).aminmax()
        if isinstance(self.branch, RadialKAN):
            self.branch.fit_span(torch.stack(extremes))
