"""Unseen problems: exact solutions, orders in time, balances; and their cells are what `sk.train(data=...)` does."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from experiments import out_of_the_box
from experiments.archive import Archive
from experiments.cells import Cell, run_settings
from experiments.freeze import open_rates
from experiments.scales import scale_named
from experiments.unseen import gray_scott2d, kuramoto_sivashinsky1d, vorticity2d
from experiments.unseen.catalog import UNSEEN
from experiments.unseen.exponential import phi
from spectrakan.config import as_mapping
from spectrakan.data.generate import generate
from spectrakan.data.prepare import NO_TEST
from spectrakan.data.problems import Problem
from spectrakan.training import resolve

KS = kuramoto_sivashinsky1d.KuramotoSivashinskyParameters
GS = gray_scott2d.GrayScottParameters
VO = vorticity2d.VorticityParameters


def centres(cells: int, length: float = 1.0) -> torch.Tensor:
    return length * (torch.arange(cells, dtype=torch.float64) + 0.5) / cells


def plane(cells: int) -> tuple[torch.Tensor, torch.Tensor]:
    return centres(cells)[:, None], centres(cells)[None, :]


def slopes(errors: list[float]) -> np.ndarray:
    return np.diff(np.log(errors)) / np.log(0.5)


def chaotic(generator: torch.Generator, samples: int = 2, cells: int = 128) -> torch.Tensor:
    start = kuramoto_sivashinsky1d.sample(samples, (cells,), KS(), generator)
    return kuramoto_sivashinsky1d.solve(start, [60.0], KS())[:, 0]


def spots(generator: torch.Generator, samples: int = 1, cells: int = 32) -> torch.Tensor:
    return gray_scott2d.sample(samples, (cells, cells), GS(), generator)


def eddies(generator: torch.Generator, samples: int = 1, cells: int = 32) -> torch.Tensor:
    return 5 * vorticity2d.sample(samples, (cells, cells), VO(), generator)


def test_phi_functions_agree_with_their_series_and_with_the_recursion():
    small = torch.tensor([-0.3, -1e-6, 0.0, 0.2], dtype=torch.float64)
    large = torch.tensor([-1.0, -7.0, -300.0, 2.5], dtype=torch.float64)
    for order in (1, 2, 3):
        series = sum(small**n / math.factorial(n + order) for n in range(14))
        assert torch.allclose(phi(order, small), series, rtol=1e-13, atol=0)
        before = large.exp() if order == 1 else phi(order - 1, large)
        assert torch.allclose(phi(order, large), (before - 1 / math.factorial(order - 1)) / large, rtol=1e-10)


@pytest.mark.parametrize(
    ("equation", "parameters", "start", "time", "steps"),
    [
        (kuramoto_sivashinsky1d, KS, chaotic, 1.0, (1 / 32, 1 / 64, 1 / 128)),
        (gray_scott2d, GS, spots, 20.0, (2.0, 1.0, 0.5)),
        (vorticity2d, VO, eddies, 1.0, (0.1, 0.05, 0.025)),
    ],
)
def test_steps_are_of_fourth_order(equation, parameters, start, time, steps, generator):
    begin = start(generator)
    exact = equation.solve(begin, [time], parameters(longest_step=steps[-1] / 8))
    errors = [
        float((equation.solve(begin, [time], parameters(longest_step=step)) - exact).abs().max()) for step in steps
    ]
    assert slopes(errors).min() > 3.6, errors
    assert errors[-1] > 1e-12, "errors must be those of the step, not of rounding"


def test_small_waves_grow_at_their_own_rate():
    """Far from saturation mode n of the flame front grows by exp((q^2 - q^4) t), q = 2 pi n / L."""
    x, time = centres(64, kuramoto_sivashinsky1d.LENGTH), 3.0
    for number in (2, 7, 12):
        wave = 2 * math.pi * number / kuramoto_sivashinsky1d.LENGTH
        start = 1e-9 * torch.sin(wave * x)[None, :, None]
        found = kuramoto_sivashinsky1d.solve(start, [time], KS())[:, 0]
        assert torch.allclose(found, start * math.exp((wave**2 - wave**4) * time), rtol=1e-6, atol=1e-16)


def test_a_flame_front_is_carried_by_its_mean(generator):
    """If u(x, t) solves the equation, so does c + u(x - c t, t): nonlinear and exact."""
    start, cells, shift = chaotic(generator), 128, 16
    time = 4.0
    speed = shift * kuramoto_sivashinsky1d.LENGTH / cells / time
    fine = KS(longest_step=0.01)
    still, moving = (kuramoto_sivashinsky1d.solve(start + c, [time], fine)[:, 0] for c in (0.0, speed))
    assert torch.allclose(moving - speed, still.roll(shift, dims=1), atol=1e-5)
    assert float((still - start).abs().max()) > 0.5


def test_a_flame_front_keeps_its_mean_and_balances_its_energy(generator):
    """d/dt <u^2> / 2 = <u_x^2> - <u_xx^2>."""
    start, step = chaotic(generator), 0.005
    before, now, after = kuramoto_sivashinsky1d.solve(start, [step, 2 * step, 3 * step], KS()).unbind(1)
    assert torch.allclose(now.mean(1), start.mean(1), atol=1e-12)
    modes = torch.fft.rfft(now[..., 0])
    wave = 2j * math.pi / kuramoto_sivashinsky1d.LENGTH * torch.arange(65, dtype=torch.float64)
    slope, curvature = (torch.fft.irfft(wave**power * modes).square().mean(1) for power in (1, 2))
    gained = (after.square() - before.square()).mean((1, 2)) / (4 * step)
    assert torch.allclose(gained, slope - curvature, rtol=1e-3, atol=1e-5)


def test_a_reaction_without_differences_is_an_ordinary_equation():
    parameters, start = GS(longest_step=0.25), (0.4, 0.3)

    def rates(_: float, state: np.ndarray) -> list[float]:
        u, v = state
        return [parameters.feed * (1 - u) - u * v**2, u * v**2 - (parameters.feed + parameters.kill) * v]

    exact = solve_ivp(rates, (0, 30), start, rtol=1e-11, atol=1e-13).y[:, -1]
    found = gray_scott2d.solve(torch.tensor(start).expand(1, 8, 8, 2), [30.0], parameters)[0, 0]
    assert np.allclose(found.numpy(), exact, atol=1e-6)


def test_food_alone_diffuses_and_is_fed_exactly():
    """Without v, u - 1 decays by exp(-(D_u |q|^2 + F) t)."""
    x, y = plane(16)
    wave, time, parameters = 0.2 * torch.sin(2 * math.pi * (x + 2 * y)), 50.0, GS()
    start = torch.stack([1 + wave, torch.zeros_like(wave)], -1)[None]
    decay = math.exp(-(parameters.diffusivity_u * 4 * math.pi**2 * 5 + parameters.feed) * time)
    found = gray_scott2d.solve(start, [time], parameters)[0, 0]
    assert torch.allclose(found[..., 0], 1 + decay * wave, atol=1e-13)
    assert float(found[..., 1].abs().max()) == 0


def test_the_reaction_loses_what_it_is_not_fed(generator):
    """d/dt <u + v> = F (1 - <u>) - (F + k) <v>: the reaction itself turns u into v."""
    parameters, step = GS(), 0.05
    before, now, after = gray_scott2d.solve(spots(generator), [10 - step, 10.0, 10 + step], parameters).unbind(1)
    gained = (after - before).sum(-1).mean((1, 2)) / (2 * step)
    u, v = now.mean((1, 2)).unbind(-1)
    balance = parameters.feed * (1 - u) - (parameters.feed + parameters.kill) * v
    assert torch.allclose(gained, balance, rtol=1e-5)


def test_a_forced_shear_flow_is_exact():
    """w = a(t) (sin + cos) 2 pi (x + y) carries nothing along: a' = force - 8 pi^2 nu a."""
    parameters, time, first = VO(viscosity=2e-3), 5.0, 0.4
    shape = vorticity2d.forcing((32, 32))
    found = vorticity2d.solve(first * shape[None, ..., None], [time], parameters)[0, 0, ..., 0]
    rate = 8 * math.pi**2 * parameters.viscosity
    amplitude = parameters.force / rate + (first - parameters.force / rate) * math.exp(-rate * time)
    assert torch.allclose(found, amplitude * shape, atol=1e-10)


def test_transport_is_velocity_times_gradient():
    """w = sin 2 pi x + cos 4 pi y: psi = w's parts over q^2, and u . grad w by hand."""
    x, y = plane(24)
    a, b = 2 * math.pi, 4 * math.pi
    w = torch.sin(a * x) + torch.cos(b * y)
    ux, uy = -torch.sin(b * y) / b, -torch.cos(a * x) / a
    expected = ux * a * torch.cos(a * x) - uy * b * torch.sin(b * y)
    found = torch.fft.irfft2(vorticity2d.Transport((24, 24))(torch.fft.rfft2(w)[None])[0], s=(24, 24))
    assert torch.allclose(found, expected, atol=1e-12)
    assert float(expected.abs().max()) > 1


def test_transport_keeps_energy_and_enstrophy(generator):
    """Without viscosity and force <w>, <w^2> and <|u|^2> stay as far as waves are kept."""
    size = (32, 32)
    smooth = eddies(generator, samples=2)
    kept = torch.fft.rfft2(smooth[..., 0]) * vorticity2d.dealiased(size)
    start = torch.fft.irfft2(kept, s=size)[..., None]
    end = vorticity2d.solve(start, [2.0], VO(viscosity=0.0, force=0.0))[:, 0]

    def energy(w: torch.Tensor) -> torch.Tensor:
        x, y = vorticity2d.wave_vectors(size)
        squares = (x**2 + y**2).clamp_min(1.0)
        psi = torch.fft.irfft2(torch.fft.rfft2(w[..., 0]) / squares, s=size)
        return (psi * w[..., 0]).mean((1, 2))

    assert float((end - start).abs().max()) > 0.1
    assert torch.allclose(end.mean((1, 2)), start.mean((1, 2)), atol=1e-12)
    assert torch.allclose(end.square().mean((1, 2)), start.square().mean((1, 2)), rtol=1e-5)
    assert torch.allclose(energy(end), energy(start), rtol=1e-6)


def test_starts_have_the_spectrum_of_their_covariance():
    """Coefficients have the variance 7^3 (|q|^2 + 49)^{-5/2}, and functions do not depend on the cells."""
    fields = vorticity2d.sample(400, (32, 32), VO(), torch.Generator().manual_seed(1))[..., 0]
    power = (torch.fft.rfft2(fields) / 32**2).abs().square().mean(0)
    for k, m in ((1, 0), (2, 1), (3, 3)):
        expected = 7**3 * (4 * math.pi**2 * (k**2 + m**2) + 49) ** -2.5
        assert float(power[k, m]) == pytest.approx(expected, rel=0.2)
    again = vorticity2d.sample(1, (64, 64), VO(), torch.Generator().manual_seed(2))
    coarse = vorticity2d.sample(1, (32, 32), VO(), torch.Generator().manual_seed(2))
    means = again.reshape(1, 32, 2, 32, 2, 1).mean((2, 4))
    assert torch.allclose(means, coarse, atol=0.05 * float(coarse.std()))


@pytest.mark.parametrize("name", UNSEEN)
def test_a_problem_is_what_its_data_pose(name: str):
    """The known problem has the history and horizon that the library gives data without a name."""
    equation = UNSEEN[name].equation
    posed = Problem.from_trajectories(replace(generate(name, 20, dtype=None), name="mine"))
    known = Problem.from_equation(equation)
    assert (known.history, known.horizon, known.resolution) == (posed.history, posed.horizon, posed.resolution)


@pytest.mark.parametrize("model", [out_of_the_box.OURS, *out_of_the_box.RIVALS])
@pytest.mark.parametrize("name", UNSEEN)
def test_cells_are_trained_as_own_data_are(name: str, model: str):
    """A cell has the settings of `sk.train(data=...)` for the same samples under a name that nobody knows."""
    entry = UNSEEN[name]
    data = replace(generate(name, entry.num_samples, dtype=None), name="mine")
    split = as_mapping(NO_TEST)
    own = resolve({"data": {"split": split}, "model": {"name": model}}, data=data).config
    cell = run_settings(Cell("unseen", "short", name, model), "train.h5")
    assert cell.budget == own.budget == "short"
    assert cell.model == own.model
    assert cell.training == own.training
    assert replace(cell.data, path=None, num_samples=None) == replace(own.data, test_samples=0)
    assert 900 < cell.training.epochs * 0.9 * entry.num_samples * 16 / cell.training.batch_size < 1_100


def test_no_rate_is_asked_for_and_long_has_none(archive: Archive):
    cells = out_of_the_box.stages(scale_named("short"))[0](archive)
    trained = [cell for cell in cells if cell.model in (out_of_the_box.OURS, *out_of_the_box.RIVALS)]
    assert len(trained) == 3 * 3 * 3
    assert not any(cell.overrides for cell in cells)
    assert open_rates(Archive(archive.results, archive.cache, "short"), cells) == []
    assert out_of_the_box.stages(scale_named("long")) == []


def test_verdicts_are_against_the_better_rival(archive: Archive, keep):
    short = Archive(archive.results, archive.cache, "short")
    errors = {"spectrakan": 0.5, "fno": 1.0, "ffno": 0.8}
    for cell in out_of_the_box.stages(scale_named("short"))[0](short):
        if cell.model in errors and cell.case != "vorticity2d":
            factor = 2.0 if cell.case == "gray_scott2d" and cell.model == "spectrakan" else 1.0
            keep(cell, factor * errors[cell.model] * (1 + 0.02 * cell.seed))
    (table,) = out_of_the_box.tables(short)
    budget, *said = table.notes
    assert "kuramoto_sivashinsky1d 10 (7)" in budget, "steps of the records, epochs of their settings"
    assert said[1].startswith("kuramoto_sivashinsky1d: 0.625 of FFNO (p = 0.000): wins")
    assert said[0].startswith("gray_scott2d: 1.250 of FFNO (p = 0.000): loses")
