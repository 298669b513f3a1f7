"""Train a network of your own, any module called as module(x, params=None, grid=None), beside SpectraKAN."""

import torch
from torch import nn

import spectrakan as sk


class Convolutions(nn.Sequential):
    """Layers on the last frame; x is (batch, history, cells, fields) at unit scale."""

    def forward(self, x, params=None, grid=None):  # noqa: D102
        return super().forward(x[:, -1].movedim(-1, 1)).movedim(1, -1)


def layer(channels, width):  # noqa: D103
    return nn.Conv1d(channels, width, 5, padding=2, padding_mode="circular")


torch.manual_seed(0)
network = Convolutions(layer(1, 32), nn.GELU(), layer(32, 32), nn.GELU(), layer(32, 1))
data = sk.generate("diffusion_reaction1d", num_samples=40, resolution=32, frames=21)
for model in (network, "spectrakan"):
    print(sk.train(data=data, model=model, overrides=["training.epochs=8"]))
