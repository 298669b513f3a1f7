"""Our F-FNO beside the same layers in plain torch, as its authors write them: fast transforms, channels last."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

import spectrakan as sk
from benchmarks.operators import inputs, training_step
from benchmarks.timing import interleaved

WIDTH, MODES, LAYERS, RATIO = 64, 16, 4, 4
"""The paper's layer; four of its 24, which cost the same each."""
CELLS, BATCH = 64, 4


class PlainFFNO(nn.Module):
    """`v + T relu(S sum_a F_a^-1 [W_a F_a v])`, with one set of W for all layers and normed weights in S and T."""

    def __init__(self) -> None:
        super().__init__()
        self.lift = weight_norm(nn.Linear(5, WIDTH))
        self.weight = nn.ParameterList(torch.randn(WIDTH, WIDTH, MODES, 2) * 0.01 for _ in range(2))
        self.layers = nn.ModuleList(
            nn.Sequential(
                weight_norm(nn.Linear(WIDTH, RATIO * WIDTH)),
                nn.ReLU(),
                weight_norm(nn.Linear(RATIO * WIDTH, WIDTH)),
            )
            for _ in range(LAYERS)
        )
        self.readout = nn.Sequential(nn.Linear(WIDTH, 128), nn.GELU(), nn.Linear(128, 3))

    def forward(self, field: Tensor) -> Tensor:
        """`(batch, 3, x, y)` to `(batch, x, y, 3)`."""
        size = field.shape[-1]
        line = torch.linspace(0, 1, size)
        mesh = torch.stack(torch.meshgrid(line, line, indexing="ij"), dim=-1).expand(field.shape[0], -1, -1, -1)
        values = self.lift(torch.cat([field.movedim(1, -1), mesh], dim=-1))
        for layer in self.layers:
            channels = values.permute(0, 3, 1, 2)
            parts = [self.spectral(channels, axis) for axis in (0, 1)]
            values = values + layer((parts[0] + parts[1]).permute(0, 2, 3, 1))
        return cast(Tensor, self.readout(values))

    def spectral(self, field: Tensor, axis: int) -> Tensor:
        """Modes along one axis, mixed by a matrix each."""
        spectrum = torch.fft.rfft(field, dim=axis + 2, norm="ortho")
        mixed = torch.zeros_like(spectrum)
        low = spectrum.narrow(axis + 2, 0, MODES)
        pattern = "bixy,iox->boxy" if axis == 0 else "bixy,ioy->boxy"
        product = torch.einsum(pattern, low, torch.view_as_complex(self.weight[axis]))
        mixed.narrow(axis + 2, 0, MODES).copy_(product)
        return torch.fft.irfft(mixed, n=field.shape[axis + 2], dim=axis + 2, norm="ortho")


def against_plain(rounds: int) -> dict[str, float]:
    """Seconds of a training step of each."""
    signature = sk.OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=3)
    ours = sk.build_model("ffno", signature, width=WIDTH, num_modes=MODES, num_layers=LAYERS, mlp_ratio=RATIO)
    made = {"ours": ours, "plain": PlainFFNO()}
    return interleaved(
        {name: training_step(model, inputs(model, CELLS, BATCH)) for name, model in made.items()}, rounds=rounds
    )
