"""Learn an equation of your own: sample and solve it once, then train on it by name."""

import torch

import spectrakan as sk


def sample(count, shape, parameters, generator):
    """Draw random smooth states (count, cells, 1)."""
    x = torch.arange(shape[0], dtype=torch.float64) / shape[0]
    a, b = torch.rand(2, count, 1, generator=generator, dtype=torch.float64)
    return (torch.sin(2 * torch.pi * (x + a)) + 0.5 * torch.cos(4 * torch.pi * (x + b)))[..., None]


def solve(initial, times, parameters):
    """Solve u_t + u_x = 0 exactly, by Fourier modes."""
    k, modes = 2j * torch.pi * torch.arange(initial.shape[1] // 2 + 1)[:, None], torch.fft.rfft(initial, dim=1)
    return torch.stack([torch.fft.irfft(modes * torch.exp(-k * t), dim=1) for t in times], dim=1)


times = tuple(0.05 * i for i in range(11))
sk.register_problem(
    sk.Equation("advection", (sk.FieldSpec("u"),), ((0.0, 1.0),), ("periodic",), (64,), times, sample, solve)
)
print(sk.train("advection", overrides=["data.num_samples=50", "training.epochs=5", "model.width=16"]))
