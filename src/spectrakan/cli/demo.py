"""`spectrakan demo`: see the model at work."""

from __future__ import annotations

import math
import time

import torch
from rich.console import Console
from rich.table import Table

from spectrakan.fields import OperatorSignature
from spectrakan.models import build_model

RESOLUTIONS = (32, 64, 128)


def demo() -> None:
    """Show one SpectraKAN, with the same weights, at three resolutions."""
    console = Console()
    torch.manual_seed(0)
    facts = OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=3)
    model = build_model("spectrakan", facts).eval()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    console.print(f"SpectraKAN in 2D, {parameters:,} parameters, one set of weights:")
    table = Table("cells", "milliseconds", "mean of the output", "change of the output")
    previous: torch.Tensor | None = None
    for cells in RESOLUTIONS:
        x = (torch.arange(cells) + 0.5) / cells
        wave = torch.sin(2 * math.pi * x)[:, None] * torch.cos(2 * math.pi * x)
        field = torch.stack([1 + 0.5 * wave, wave, -wave], dim=-1)[None, None]
        started = time.perf_counter()
        with torch.no_grad():
            output = model(field)[0]
        elapsed = 1000 * (time.perf_counter() - started)
        small = output.unflatten(1, (32, -1)).mean(2).unflatten(0, (32, -1)).mean(1)
        change = "" if previous is None else f"{(small - previous).abs().max():.2e}"
        table.add_row(f"{cells} x {cells}", f"{elapsed:.0f}", f"{output.mean():.6f}", change)
        previous = small
    console.print(table)
    console.print("The output converges as the grid is refined: the model is an operator, not a picture filter.")
