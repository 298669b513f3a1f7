"""Random functions: sums of a few waves, and uniform and log-uniform numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def uniform_draws(shape: Sequence[int], low: float, high: float, generator: torch.Generator) -> Tensor:
    """Independent numbers from U(low, high), float64, on the generator's device.

    >>> uniform_draws((2,), 3.0, 3.0, torch.Generator())
    tensor([3., 3.], dtype=torch.float64)
    """
    draws = torch.rand(tuple(shape), generator=generator, dtype=torch.float64, device=generator.device)
    return low + (high - low) * draws


def log_uniform_draws(shape: Sequence[int], low: float, high: float, generator: torch.Generator) -> Tensor:
    """Independent numbers whose logarithm is uniform on (log low, log high)."""
    return uniform_draws(shape, math.log(low), math.log(high), generator).exp()


@dataclass(frozen=True)
class MultiModeField:
    """Sums of waves on a line, as PDEBench draws them.

    U(x) = +- sum over n = 1 .. num_modes of A_n sin(2 pi n m_n x / length + phi_n), A ~ U(0, 1),
    phi ~ U(0, 2 pi), m_n = how often n came up in two draws from 1 .. num_modes (so a mode not drawn adds a
    constant). One sample in ten is replaced by |U|; with `window_probability` it is cut to a window
    (tanh edges of width 0.01) from a ~ U(0.1, 0.45) to b ~ U(0.55, 0.9), in the coordinate x itself.

    Unlike PDEBench's, waves fit the period exactly and every number is drawn independently. The draws do
    not depend on the points: one seed gives the same functions at every resolution.
    """

    length: float
    num_modes: int
    window_probability: float

    def draw(self, points: Tensor, num_samples: int, generator: torch.Generator) -> Tensor:
        """The functions at points `(n,)`: `(num_samples, n)`, float64."""
        device, num_modes = generator.device, self.num_modes
        picks = torch.randint(num_modes, (num_samples, 2), generator=generator, device=device)
        times_drawn = torch.nn.functional.one_hot(picks, num_modes).sum(1).to(torch.float64)
        amplitude = uniform_draws((num_samples, num_modes), 0.0, 1.0, generator)
        phase = uniform_draws((num_samples, num_modes), 0.0, 2 * math.pi, generator)
        folded = uniform_draws((num_samples, 1), 0.0, 1.0, generator) < 0.1
        sign = uniform_draws((num_samples, 1), -1.0, 1.0, generator).sign()
        windowed = uniform_draws((num_samples, 1), 0.0, 1.0, generator) < self.window_probability
        left = uniform_draws((num_samples, 1), 0.1, 0.45, generator)
        right = uniform_draws((num_samples, 1), 0.55, 0.9, generator)
        x = points.to(torch.float64).to(device)
        field = torch.zeros((num_samples, x.numel()), dtype=torch.float64, device=device)
        for mode in range(num_modes):
            frequency = 2 * math.pi * (mode + 1) / self.length * times_drawn[:, mode, None]
            field += amplitude[:, mode, None] * torch.sin(frequency * x + phase[:, mode, None])
        field = sign * torch.where(folded, field.abs(), field)
        window = 0.5 * (torch.tanh((x - left) / 0.01) - torch.tanh((x - right) / 0.01))
        return torch.where(windowed, field * window, field)

    def draw_scaled(
        self, points: Tensor, reference: Tensor, num_samples: int, generator: torch.Generator, *, constant: float
    ) -> Tensor:
        """The functions scaled to [0, 1] by their range on the points `reference`, the same for all `points`.

        A function that does not vary becomes `constant`.
        """
        waves = self.draw(torch.cat([reference, points]), num_samples, generator)
        lowest, highest = waves[:, : len(reference)].aminmax(dim=1, keepdim=True)
        span = highest - lowest
        return torch.where(span > 0.0, (waves - lowest) / span, constant)[:, len(reference) :].clamp(0.0, 1.0)
