"""Energy by wavenumber: what scales of the truth a prediction keeps, loses or makes up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.metrics import energy_spectrum


class SpectrumProfile:
    """Mean energy spectra of chosen frames, from a stream of batches `(batch, time, *space, channel)`.

        E_s = Σ_{s <= |k| < s + 1} |F_k|²,  k in waves across the box

    >>> profile = SpectrumProfile(["u"], Grid.uniform((8,)), [0])
    >>> profile.add(torch.ones(2, 1, 8, 1), torch.zeros(2, 1, 8, 1))
    >>> profile.result([0.5])["prediction"]["u"]
    [[1.0, 0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(self, names: Sequence[str], grid: Grid, frames: Sequence[int]) -> None:
        self.names = list(names)
        self.grid = grid
        self.frames = list(frames)
        self._totals: dict[str, Tensor] = {}
        self._samples = 0

    def add(self, pred: Tensor, target: Tensor) -> None:
        """Take in a batch."""
        if not all(0 <= frame < pred.shape[1] for frame in self.frames):
            raise ConfigError(f"spectra are asked for frames {self.frames} of {pred.shape[1]} predicted ones")
        said, true = (values[:, self.frames].to(torch.float64) for values in (pred, target))
        for name, values in (("truth", true), ("prediction", said), ("error", said - true)):
            total = energy_spectrum(values, self.grid).sum(0)
            self._totals[name] = total if name not in self._totals else self._totals[name] + total
        self._samples += pred.shape[0]

    def result(self, times: Sequence[float]) -> dict[str, Any]:
        """For `truth`, `prediction` and `error`: by field, one list a frame, one number a shell."""
        shells = next(iter(self._totals.values())).shape[1]
        means = {name: total / self._samples for name, total in self._totals.items()}
        return {
            "frames": self.frames,
            "times": [times[frame] for frame in self.frames],
            "shells": list(range(shells)),
            **{
                kind: {name: mean[..., place].tolist() for place, name in enumerate(self.names)}
                for kind, mean in means.items()
            },
        }
