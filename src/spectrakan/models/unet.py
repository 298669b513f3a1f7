"""U-Net: convolutions on four scales, each handing its finest features across to the way up.

    e_l = B_l(pool e_{l-1}),     d_l = B'_l([up d_{l+1}, e_l]),     u_next = Q d_0,

with B twice a 3-wide convolution, batch norm and tanh, and d_4 = e_4.

Ronneberger et al., U-Net, MICCAI 2015; widths, tanh and bias-free convolutions as in Takamoto et al., PDEBench,
NeurIPS 2022. A field whose sizes 16 does not divide is continued past its far ends (round a periodic axis, else by
its last value) and the answer cropped; the published code refuses it.
It sees cells, not lengths: it takes any resolution, but what it learnt on one is meant for that one. Coordinates
are no input, and the widths and weights of the grid's cells are not used. Shapes: `(batch, channel, *space)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spectrakan.config import settings
from spectrakan.fields import OperatorSignature
from spectrakan.models.amfno import Count, with_params
from spectrakan.models.operator import Operator, Predict
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import channels_first

_CONVOLUTION: dict[int, type[nn.Conv1d | nn.Conv2d | nn.Conv3d]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
_TRANSPOSED: dict[int, type[nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d]] = {
    1: nn.ConvTranspose1d,
    2: nn.ConvTranspose2d,
    3: nn.ConvTranspose3d,
}
_NORM: dict[int, type[nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d]] = {
    1: nn.BatchNorm1d,
    2: nn.BatchNorm2d,
    3: nn.BatchNorm3d,
}
_POOL: dict[int, type[nn.MaxPool1d | nn.MaxPool2d | nn.MaxPool3d]] = {
    1: nn.MaxPool1d,
    2: nn.MaxPool2d,
    3: nn.MaxPool3d,
}


@settings
class UNetConfig:
    """Choices of the network; defaults are PDEBench's."""

    width: Count = 32
    """Channels on the finest scale; each coarser one has twice as many."""
    num_levels: Count = 4
    """Poolings, so that the coarsest cells are 2^num_levels fine ones wide."""
    predict: Predict = "auto"
    """`increment` to the last frame, the frame itself (`direct`), or by the signature."""


class UNet(Operator):
    """The network of the file's equation."""

    name = "unet"
    config: UNetConfig

    def __init__(self, signature: OperatorSignature, config: UNetConfig) -> None:
        super().__init__(signature, config, predict=config.predict)
        dims = signature.space_dims
        widths = [config.width * 2**level for level in range(config.num_levels + 1)]
        channels = signature.history * signature.in_channels + signature.num_params
        self.encoder = nn.ModuleList(
            _two_convolutions(dims, before, after) for before, after in zip([channels, *widths], widths, strict=False)
        )
        self.rise = nn.ModuleList(_TRANSPOSED[dims](2 * width, width, 2, stride=2) for width in widths[:-1])
        self.decoder = nn.ModuleList(_two_convolutions(dims, 2 * width, width) for width in widths[:-1])
        self.pool = _POOL[dims](2)
        self.out = _CONVOLUTION[dims](config.width, signature.out_channels, 1)

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Down and up again on a field continued to a fitting size, then cropped."""
        field = with_params(channels_first(history), params)
        for place, axis in enumerate(axes, start=2):
            field = _continued(field, place, self._fitting(axis.cells), axis.periodic)
        answer: Tensor = self._network(field.transpose(0, 1).contiguous())
        for place, axis in enumerate(axes, start=2):
            answer = answer.narrow(place, 0, axis.cells)
        return answer.movedim(1, -1)

    def _network(self, field: Tensor) -> Tensor:
        across = []
        for level, block in enumerate(self.encoder):
            field = block(field if level == 0 else self.pool(field))
            across.append(field)
        for level in reversed(range(len(self.decoder))):
            field = self.decoder[level](torch.cat([self.rise[level](field), across[level]], dim=1))
        answer: Tensor = self.out(field)
        return answer

    def _fitting(self, cells: int) -> int:
        """The next multiple of the coarsest cell, and two of them at least, for batch norm needs a spread."""
        coarsest: int = 2**self.config.num_levels
        return max(2, -(-cells // coarsest)) * coarsest


def _two_convolutions(dims: int, before: int, after: int) -> nn.Sequential:
    convolution, norm = _CONVOLUTION[dims], _NORM[dims]
    return nn.Sequential(
        convolution(before, after, 3, padding=1, bias=False),
        norm(after),
        nn.Tanh(),
        convolution(after, after, 3, padding=1, bias=False),
        norm(after),
        nn.Tanh(),
    )


def _continued(field: Tensor, place: int, cells: int, periodic: bool) -> Tensor:
    """The field on `cells` cells along one axis: round and round, or the last value again."""
    present = field.shape[place]
    if cells == present:
        return field
    index = torch.arange(cells, device=field.device)
    index = index.remainder(present) if periodic else index.clamp_max(present - 1)
    return field.index_select(place, index)
