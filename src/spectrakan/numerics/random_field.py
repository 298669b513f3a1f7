"""Random functions: sums of a few waves, and Gaussian fields of a chosen smoothness in any dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spectrakan.errors import ConfigError


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


def multi_mode_field(
    points: Tensor,
    num_samples: int,
    *,
    length: float,
    num_modes: int,
    window_probability: float,
    generator: torch.Generator,
) -> Tensor:
    """Sums of waves on a line, as PDEBench draws them: points `(n,)` -> `(num_samples, n)`.

    U(x) = +- sum over n = 1 .. num_modes of A_n sin(2 pi n m_n x / length + phi_n), A ~ U(0, 1),
    phi ~ U(0, 2 pi), m_n = how often n came up in two draws from 1 .. num_modes (so a mode not drawn adds a
    constant). One sample in ten is replaced by |U|; with `window_probability` it is cut to a window
    (tanh edges of width 0.01) from a ~ U(0.1, 0.45) to b ~ U(0.55, 0.9), in the coordinate x itself.

    Unlike PDEBench's, waves fit the period exactly and every number is drawn independently. The draws do
    not depend on `points`: one seed gives the same functions at every resolution.
    """
    device = generator.device
    picks = torch.randint(num_modes, (num_samples, 2), generator=generator, device=device)
    times_drawn = torch.nn.functional.one_hot(picks, num_modes).sum(1).to(torch.float64)
    amplitude = uniform_draws((num_samples, num_modes), 0.0, 1.0, generator)
    phase = uniform_draws((num_samples, num_modes), 0.0, 2 * math.pi, generator)
    folded = uniform_draws((num_samples, 1), 0.0, 1.0, generator) < 0.1
    sign = uniform_draws((num_samples, 1), -1.0, 1.0, generator).sign()
    windowed = uniform_draws((num_samples, 1), 0.0, 1.0, generator) < window_probability
    left = uniform_draws((num_samples, 1), 0.1, 0.45, generator)
    right = uniform_draws((num_samples, 1), 0.55, 0.9, generator)
    x = points.to(torch.float64).to(device)
    field = torch.zeros((num_samples, x.numel()), dtype=torch.float64, device=device)
    for mode in range(num_modes):
        frequency = 2 * math.pi * (mode + 1) / length * times_drawn[:, mode, None]
        field += amplitude[:, mode, None] * torch.sin(frequency * x + phase[:, mode, None])
    field = sign * torch.where(folded, field.abs(), field)
    window = 0.5 * (torch.tanh((x - left) / 0.01) - torch.tanh((x - right) / 0.01))
    return torch.where(windowed, field * window, field)


def gaussian_random_field(
    shape: Sequence[int],
    num_samples: int,
    *,
    correlation_length: float,
    smoothness: float,
    generator: torch.Generator,
    periodic: bool = True,
) -> Tensor:
    """Gaussian fields of mean 0 and variance 1 on the unit box: `(num_samples, *shape)`, float64.

    Matern spectrum S(k) ~ (2 nu / l^2 + |2 pi k|^2)^(-nu - d/2) with l = `correlation_length` (share of the
    box) and nu = `smoothness` (number of mean-square derivatives); white noise is coloured by sqrt(S).
    Not periodic: a part is cut out of a periodic field on a box of twice the size.
    (nu, l) = (1, sqrt(2)/3) in 2D is the field N(0, (-Laplace + 9)^-2) of the usual Darcy coefficients.
    """
    if correlation_length <= 0 or smoothness <= 0:
        raise ConfigError(
            f"correlation_length and smoothness must be positive, got {correlation_length} and {smoothness}"
        )
    box = 1 if periodic else 2
    full = tuple(box * size for size in shape)
    axes = tuple(range(1, len(full) + 1))
    filter_ = _matern_amplitude(full, float(box), correlation_length, smoothness, generator.device)
    noise = torch.randn((num_samples, *full), generator=generator, dtype=torch.float64, device=generator.device)
    spectrum = torch.fft.rfftn(noise, dim=axes)
    field: Tensor = torch.fft.irfftn(spectrum * filter_[..., : spectrum.shape[-1]], s=full, dim=axes)
    for axis, size in zip(axes, shape, strict=True):
        field = field.narrow(axis, 0, size)
    return field.contiguous()


def _matern_amplitude(
    shape: tuple[int, ...], box: float, length: float, smoothness: float, device: torch.device
) -> Tensor:
    """sqrt(S) on the full grid of wave numbers, scaled so that the field's variance is one."""
    squares = torch.zeros(shape, dtype=torch.float64, device=device)
    for axis, size in enumerate(shape):
        wave = 2 * math.pi * torch.fft.fftfreq(size, d=box / size, dtype=torch.float64, device=device)
        squares = squares + wave.square().reshape(-1, *[1] * (len(shape) - axis - 1))
    density = (2 * smoothness / length**2 + squares).pow(-smoothness - len(shape) / 2)
    return (density / density.mean()).sqrt()
