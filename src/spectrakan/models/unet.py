"""U-Net: convolutions on four scales, each with a connection across to the decoder.

    e_l = B_l(pool e_{l-1}),     d_l = B'_l([up d_{l+1}, e_l]),     u_next = Q d_0,

with B twice a 3-wide convolution, batch norm and tanh, and d_4 = e_4.

Ronneberger et al., U-Net, MICCAI 2015; widths, tanh and bias-free convolutions as in Takamoto et al., PDEBench,
NeurIPS 2022. A field whose sizes 16 does not divide is continued past its far ends (periodically, or by its last
value) and the output cropped; the published code refuses it.
Its stencils count cells, not lengths: it takes any resolution, but its weights fit the one of its training.
Coordinates are no input, and widths and weights of the cells are not used. Shapes: `(batch, channel, *space)`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis
from spectrakan.nn.embedding import channels_first, with_params


@settings
class UNetConfig:
    """Settings of the network; defaults are PDEBench's."""

    width: Count = 32
    """Channels on the finest scale; each coarser one has twice as many."""
    num_levels: Count = 4
    """Poolings, so that the coarsest cells are 2^num_levels fine ones wide."""


class UNet(Operator):
    """The network of the file's equation."""

    name = "unet"
    config: UNetConfig

    def _build(self) -> None:
        signature, config = self.signature, self.config
        dims = signature.space_dims
        widths = [config.width * 2**level for level in range(config.num_levels + 1)]
        channels = signature.history * signature.in_channels + signature.num_params
        self.encoder = nn.ModuleList(
            _two_convolutions(dims, before, after) for before, after in zip([channels, *widths], widths, strict=False)
        )
        self.rise = nn.ModuleList(
            getattr(nn, f"ConvTranspose{dims}d")(2 * width, width, 2, stride=2) for width in widths[:-1]
        )
        self.decoder = nn.ModuleList(_two_convolutions(dims, 2 * width, width) for width in widths[:-1])
        self.pool = getattr(nn, f"MaxPool{dims}d")(2)
        self.out = getattr(nn, f"Conv{dims}d")(config.width, self.network_out_channels, 1)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The network on a field continued to a fitting size, then cropped."""
        field = with_params(channels_first(history), params)
        coarsest: int = 2**self.config.num_levels
        for dim, axis in enumerate(axes, start=2):
            # The next multiple of the coarsest cell, at least two of them, because batch norm needs a variance.
            fitting = max(2, -(-axis.cells // coarsest)) * coarsest
            if fitting > axis.cells:  # periodic, or with the last value repeated
                index = torch.arange(fitting, device=field.device)
                index = index.remainder(axis.cells) if axis.periodic else index.clamp_max(axis.cells - 1)
                field = field.index_select(dim, index)
        field, across = field.transpose(0, 1).contiguous(), []
        for level, block in enumerate(self.encoder):
            field = block(field if level == 0 else self.pool(field))
            across.append(field)
        for level in reversed(range(len(self.decoder))):
            field = self.decoder[level](torch.cat([self.rise[level](field), across[level]], dim=1))
        output: Tensor = self.out(field)
        for dim, axis in enumerate(axes, start=2):
            output = output.narrow(dim, 0, axis.cells)
        return output.movedim(1, -1)


def _two_convolutions(dims: int, before: int, after: int) -> nn.Sequential:
    convolution, norm = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")
    layers: list[nn.Module] = []
    for width in (before, after):
        layers += [convolution(width, after, 3, padding=1, bias=False), norm(after), nn.Tanh()]
    return nn.Sequential(*layers)
