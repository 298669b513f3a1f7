"""Train on NumPy arrays of your own, with a physical parameter: heat on a ring, nu differs by sample."""

import numpy as np

import spectrakan as sk

rng = np.random.default_rng(0)
x = np.arange(64) / 64
times = np.linspace(0.0, 0.1, 9)
nu = rng.uniform(0.05, 0.5, 60)
waves = np.arange(1, 5)
amplitude, phase = rng.normal(size=(60, 4)), rng.uniform(0, 2 * np.pi, (60, 4))
decay = np.exp(-nu[:, None, None] * (2 * np.pi * waves) ** 2 * times[:, None])  # (sample, time, wave)
shape = amplitude[..., None] * np.sin(2 * np.pi * waves[:, None] * x + phase[..., None])  # (sample, wave, x)
values = np.einsum("stw,swx->stx", decay, shape)[..., None]  # (sample, time, x, field)

data = sk.Trajectories.from_arrays(
    values, fields=("heat",), times=times, params=nu, param_names=("nu",), boundary=("periodic",), name="my_heat"
)
run = sk.train(data=data, overrides=["data.history=1", "training.epochs=20", "model.width=16"])
print(data)
print(run)
