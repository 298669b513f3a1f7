"""The Laplace layer: plain loops, a known oscillator, and an integral."""

from __future__ import annotations

import cmath
import itertools
import math

import numpy as np
import pytest
import torch

from spectrakan.models.lno import MIN_DECAY, PoleResidue
from spectrakan.nn.axis import axes_of


def axes_for(size: tuple[int, ...]):
    return axes_of(size, None, [False] * len(size))


def set_pole(layer: PoleResidue, axis: int, index: tuple[int, ...], pole: complex) -> None:
    with torch.no_grad():
        raw = math.log(math.expm1(-pole.real - MIN_DECAY))
        layer.poles[axis][index] = torch.tensor([raw, pole.imag], dtype=torch.float64)


def by_loops(layer: PoleResidue, field: np.ndarray) -> np.ndarray:
    """Re sum_i sum_{n..} beta prod_a ( sum_l alpha_l (e^{i w x_a} - e^{mu x_a}) / (i w - mu) ), all by loops."""
    width, batch, *size = field.shape
    centres = [[(j + 0.5) / n for j in range(n)] for n in size]
    waves = [[2 * math.pi * k for k in range(-((n + 1) // 2 - 1), (n + 1) // 2)] for n in size]
    poles = [layer.complex_poles(axis).detach().numpy() for axis in range(len(size))]
    residues = torch.view_as_complex(layer.residues).detach().numpy()
    out = np.zeros(field.shape)
    for b, i, o in itertools.product(range(batch), range(width), range(width)):
        alpha = {}
        for ws in itertools.product(*waves):
            alpha[ws] = sum(
                field[i, b][js] * cmath.exp(-1j * sum(w * x[j] for w, x, j in zip(ws, centres, js, strict=True)))
                for js in np.ndindex(*size)
            ) / math.prod(size)
        for js in np.ndindex(*size):
            total = 0j
            for ns in np.ndindex(*residues.shape[2:]):
                mus = [poles[axis][i, o, n] for axis, n in enumerate(ns)]
                for ws, coefficient in alpha.items():
                    term = coefficient * residues[i, o][ns]
                    for w, mu, x, j in zip(ws, mus, centres, js, strict=True):
                        term *= (cmath.exp(1j * w * x[j]) - cmath.exp(mu * x[j])) / (1j * w - mu)
                    total += term
            out[o, b][js] += total.real
    return out


@pytest.mark.parametrize("size", [(7,), (8,), (4, 5), (3, 2, 4)], ids=str)
def test_layer_is_the_sum_over_modes_and_poles(size, generator):
    torch.manual_seed(0)
    layer = PoleResidue(2, 3 if len(size) == 1 else 2, len(size)).double()
    field = torch.randn(2, 2 if len(size) < 3 else 1, *size, dtype=torch.float64, generator=generator)
    assert np.abs(layer(field, axes_for(size)).detach().numpy() - by_loops(layer, field.numpy())).max() < 1e-11


@pytest.mark.parametrize("waves", [1, 3])
def test_a_damped_oscillator_at_rest_answers_a_sine_exactly(waves):
    """y'' + c y' + k y = sin(w t), y(0) = y'(0) = 0: with its pole, the layer gives the textbook answer."""
    damping, stiffness, cells = 2.4, 130.0, 48
    w = 2 * math.pi * waves
    decay, ringing = damping / 2, math.sqrt(stiffness - damping**2 / 4)
    layer = PoleResidue(1, 1, 1).double()
    set_pole(layer, 0, (0, 0, 0), complex(-decay, ringing))
    with torch.no_grad():
        # The oscillator's answer to a kick, e^{-dt} sin(rt) / r, is the real part of beta e^{mu t}.
        layer.residues[0, 0, 0] = torch.tensor([0.0, -1 / ringing], dtype=torch.float64)
    t = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    answer = layer(torch.sin(w * t).view(1, 1, -1), axes_for((cells,)))[0, 0]
    size = (stiffness - w**2) ** 2 + (damping * w) ** 2
    cosine, sine = -damping * w / size, (stiffness - w**2) / size
    start = -cosine
    slope = (-sine * w + decay * start) / ringing
    steady = cosine * torch.cos(w * t) + sine * torch.sin(w * t)
    transient = torch.exp(-decay * t) * (start * torch.cos(ringing * t) + slope * torch.sin(ringing * t))
    assert (answer - steady - transient).abs().max() < 1e-13
    assert transient.abs().max() > 0.3 * steady.abs().max(), "both parts matter here"


def test_the_answer_is_the_causal_integral_in_two_dimensions():
    """One pole an axis: y(x1, x2) = Re int_0^x1 int_0^x2 beta e^{mu1 (x1 - s)} e^{mu2 (x2 - t)} u(s, t)."""
    layer = PoleResidue(1, 1, 2).double()
    poles, beta = (complex(-2.0, 5.0), complex(-3.0, -4.0)), complex(0.7, -1.3)
    for axis, pole in enumerate(poles):
        set_pole(layer, axis, (0, 0, 0), pole)
    with torch.no_grad():
        layer.residues[0, 0, 0, 0] = torch.tensor([beta.real, beta.imag], dtype=torch.float64)
    size = (12, 15)
    x, y = [(np.arange(n) + 0.5) / n for n in size]
    field = np.outer(1 + np.cos(2 * np.pi * x), np.sin(4 * np.pi * y))

    def causal(function, pole: complex, ends: np.ndarray) -> np.ndarray:
        nodes, weights = np.polynomial.legendre.leggauss(60)
        values = []
        for end in ends:
            s = end * (nodes + 1) / 2
            values.append((weights * end / 2 * np.exp(pole * (end - s)) * function(s)).sum())
        return np.array(values)

    first = causal(lambda s: 1 + np.cos(2 * np.pi * s), poles[0], x)
    second = causal(lambda s: np.sin(4 * np.pi * s), poles[1], y)
    expected = (beta * np.outer(first, second)).real
    found = layer(torch.from_numpy(field)[None, None], axes_for(size))[0, 0].detach().numpy()
    assert np.abs(found - expected).max() < 1e-13


def test_poles_are_stable_whatever_the_parameters():
    layer = PoleResidue(2, 3, 2)
    for value in (-1e4, -3.0, 0.0, 50.0, 1e4):
        with torch.no_grad():
            layer.poles[0].fill_(value)
        assert bool((layer.complex_poles(0).real <= -MIN_DECAY).all())
        answer = layer(torch.ones(2, 1, 6, 6), axes_for((6, 6)))
        assert torch.isfinite(answer).all()
