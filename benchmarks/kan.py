"""Our KAN with learnable knots beside pykan without its symbolic part: forward and backward."""

from __future__ import annotations

import torch

import spectrakan as sk
from benchmarks.timing import interleaved

WIDTHS = (30, 64, 64)


def against_pykan(rounds: int) -> list[dict[str, object]]:
    """Seconds of forward and backward at three batch sizes."""
    from kan import KAN as PyKAN  # noqa: N811

    ours = sk.nn.KAN(WIDTHS, spline_order=3, num_intervals=5)
    peer = PyKAN(width=list(WIDTHS), grid=5, k=3, symbolic_enabled=False, auto_save=False, save_act=False)
    peer.speed()
    rows: list[dict[str, object]] = []
    for batch in (16, 256, 4096):
        x = torch.randn(batch, WIDTHS[0], generator=torch.Generator().manual_seed(0))

        def run(model: torch.nn.Module, x: torch.Tensor = x) -> None:
            model.zero_grad()
            model(x).square().mean().backward()

        seconds = interleaved({"ours": lambda: run(ours), "pykan": lambda: run(peer)}, rounds=rounds)
        rows.append({"batch": batch, "ours": seconds["ours"], "pykan": seconds["pykan"]})
    return rows
