"""One set of weights is one operator at every resolution."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

import spectrakan as sk


def smooth_input(cells: tuple[int, ...], history: int = 2, channels: int = 2) -> torch.Tensor:
    """A smooth function of space, differing by frame and field, at cell centres: (1, history, *cells, field)."""
    axes = [(torch.arange(n, dtype=torch.float64) + 0.5) / n for n in cells]
    mesh = torch.meshgrid(*axes, indexing="ij")
    frames = []
    for t in range(history):
        fields = []
        for c in range(channels):
            value = torch.full(cells, 0.3 * c, dtype=torch.float64)
            for number, x in enumerate(mesh, start=1):
                value = value + torch.sin(2 * math.pi * x + 0.4 * t + c) / number + 0.3 * torch.exp(-x * (c + 1))
            fields.append(value)
        frames.append(torch.stack(fields, dim=-1))
    return torch.stack(frames)[None]


def onto(output: torch.Tensor, cells: tuple[int, ...]) -> torch.Tensor:
    """Means of a (1, *space, field) array over `cells` larger cells, which divide its sizes."""
    for axis, n in enumerate(cells, start=1):
        output = output.unflatten(axis, (n, -1)).mean(axis + 1)
    return output


def built(dims: int, **choices) -> torch.nn.Module:
    torch.manual_seed(3)
    signature = sk.OperatorSignature(space_dims=dims, history=2, in_channels=2, out_channels=2)
    return sk.build_model("spectrakan", signature, width=12, **choices).double()


CHOICES = [
    {},
    {"variant": "paper"},
    {
        "basis": "cosine",
        "coarse_num_layers": 2,
        "coarse_mixing": "axial",
        "num_modes": 6,
        "coarse_num_modes": 4,
        "noise_level": 0.1,
    },
    {"basis": "extended", "pool": "center+mean+std", "multiplicative_readout": True, "history_decay": 0.5},
    {"block": "skip", "coarse_num_layers": 4, "coarse_mixing": "axial"},
]


@pytest.mark.parametrize("choices", CHOICES, ids=str)
@pytest.mark.parametrize("sizes", [(64, 128, 256, 512, 1024), (32, 64, 128, 256)], ids=["1d", "2d"])
def test_outputs_converge_under_refinement(sizes, choices):
    dims = 1 if len(sizes) == 5 else 2
    model = built(dims, **choices)
    first = (sizes[0],) * dims
    with torch.no_grad():
        outputs = [onto(model(smooth_input((n,) * dims)), first) for n in sizes]
    changes = [float((fine - coarse).abs().max()) for coarse, fine in pairwise(outputs)]
    assert all(later < 0.6 * earlier for earlier, later in pairwise(changes)), changes
    assert changes[-1] < 1e-2 * float(outputs[-1].abs().max())


@pytest.mark.parametrize("choices", CHOICES, ids=str)
@pytest.mark.parametrize("dims", [1, 2])
def test_neighbouring_sizes_agree_to_the_cell_width(dims, choices):
    """63, 64 and 65 cells (and twice that): the mean and the value at the centre differ by O(h)."""
    model = built(dims, **choices)
    gaps = []
    for size in (64, 128):
        summaries = []
        for cells in (size - 1, size, size + 1):
            with torch.no_grad():
                output = model(smooth_input((cells,) * dims))
            mean = output.flatten(1, -2).mean(1)
            for _ in range(dims):
                output = (output[:, (cells - 1) // 2] + output[:, cells // 2]) / 2
            summaries.append(torch.cat([mean, output], dim=1))
        spread = torch.stack(summaries)
        gaps.append(float((spread.amax(0) - spread.amin(0)).max()))
    assert gaps[0] < 0.5 / 64
    assert gaps[1] < 0.75 * gaps[0] or gaps[1] < 1e-4


def test_three_dimensions_converge_too():
    model = built(3, num_modes=4, coarse_num_modes=3, num_layers=2, coarse_num_layers=2)
    with torch.no_grad():
        outputs = [onto(model(smooth_input((n,) * 3)), (8, 8, 8)) for n in (8, 16, 32)]
    changes = [float((fine - coarse).abs().max()) for coarse, fine in pairwise(outputs)]
    assert changes[1] < 0.6 * changes[0]
