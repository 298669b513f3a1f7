"""Families: exact solutions, orders of convergence, one batch for all parameters, and what their cases show."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from experiments.cells import Cell, run_settings
from experiments.families import advection_diffusion1d, burgers1d, viscous_gas1d
from experiments.families.catalog import FAMILIES
from experiments.families.waves import random_waves
from experiments.scales import SCALES
from spectrakan.data.generate import generate
from spectrakan.data.prepare import prepare
from spectrakan.pde import cns1d
from spectrakan.pde.equation import with_values


def centres(cells: int) -> torch.Tensor:
    return (torch.arange(cells, dtype=torch.float64) + 0.5) / cells


def cole_hopf(x: torch.Tensor, time: float, speed: float, viscosity: float, offset: float = 1.05) -> torch.Tensor:
    """u = -(2 nu / c) phi_x / phi, phi = offset + exp(-4 pi^2 nu t) cos(2 pi x), which solves phi_t = nu phi_xx."""
    decay = math.exp(-4 * math.pi**2 * viscosity * time)
    phi, slope = offset + decay * torch.cos(2 * math.pi * x), -2 * math.pi * decay * torch.sin(2 * math.pi * x)
    return -2 * viscosity / speed * slope / phi


def test_burgers_agrees_with_the_exact_solution_for_each_sample():
    x, logs = centres(128), torch.tensor([[-2.0, -2.0], [0.0, -1.5], [2.0, -1.3]], dtype=torch.float64)
    numbers = [(2.0 ** float(a), 10.0 ** float(b)) for a, b in logs]
    start = torch.stack([cole_hopf(x, 0.0, *pair) for pair in numbers])[..., None]
    values = {"log_speed": logs[:, 0], "log_viscosity": logs[:, 1]}
    found = burgers1d.solve(start, [0.1, 0.3], with_values(burgers1d.BurgersParameters(), values))
    for frame, time in enumerate([0.1, 0.3]):
        exact = torch.stack([cole_hopf(x, time, *pair) for pair in numbers])
        assert float((found[:, frame, :, 0] - exact).abs().max()) < 1e-7


def test_burgers_is_of_fourth_order_in_time():
    x = centres(64)
    start, exact = (torch.stack([cole_hopf(x, time, 1.0, 0.05, offset=1.2)])[..., None] for time in (0.0, 0.4))
    errors = []
    for courant in (1.0, 0.5, 0.25):
        parameters = burgers1d.BurgersParameters(log_viscosity=math.log10(0.05), min_cells=64, courant=courant)
        errors.append(float((burgers1d.solve(start, [0.4], parameters)[:, 0] - exact).abs().max()))
    slopes = np.diff(np.log(errors)) / np.log(0.5)
    assert slopes.min() > 3.5, errors


def test_burgers_data_are_resolved():
    """The stiffest corner of the family on twice the points differs by less than a model can learn."""
    ranges = FAMILIES["burgers1d"].ranges
    corner = {"log_speed": ranges["log_speed"][1], "log_viscosity": ranges["log_viscosity"][0]}
    start = random_waves(4, (128,), torch.Generator().manual_seed(3))
    coarse, fine = (
        burgers1d.solve(start, [0.1], burgers1d.BurgersParameters(min_cells=cells, **corner)) for cells in (512, 1024)
    )
    assert float((coarse - fine).square().mean().sqrt() / fine.square().mean().sqrt()) < 1e-3


def test_a_wave_is_carried_and_damped_exactly():
    x, speed, log_nu, time = centres(32), 1.7, -2.0, 0.3
    start = torch.sin(2 * math.pi * 3 * x)[None, :, None]
    parameters = advection_diffusion1d.AdvectionDiffusionParameters(speed=speed, log_diffusivity=log_nu)
    found = advection_diffusion1d.solve(start, [0.0, time], parameters)[0, :, :, 0]
    damped = math.exp(-(10**log_nu) * (6 * math.pi) ** 2 * time)
    assert torch.allclose(found[0], start[0, :, 0], atol=1e-14)
    assert torch.allclose(found[1], damped * torch.sin(6 * math.pi * (x - speed * time)), atol=1e-13)


def test_the_gas_has_its_own_viscosities(generator):
    logs = torch.tensor([-3.0, -1.0], dtype=torch.float64)
    start = viscous_gas1d.sample(2, (64,), viscous_gas1d.ViscosityParameters(), generator)
    values = {"log_eta": logs, "log_zeta": logs.flip(0)}
    found = viscous_gas1d.solve(start, [0.05], with_values(viscous_gas1d.ViscosityParameters(), values))
    for index, (eta, zeta) in enumerate([(1e-3, 1e-1), (1e-1, 1e-3)]):
        alone = cns1d.solve(start[index : index + 1], [0.05], cns1d.CNS1DParameters(eta=eta, zeta=zeta))
        assert torch.allclose(found[index : index + 1], alone, rtol=1e-9, atol=1e-11)
    assert not torch.allclose(found, cns1d.solve(start, [0.05], cns1d.CNS1DParameters()), rtol=1e-3)


@pytest.mark.parametrize("name", ["burgers1d", "advection_diffusion1d"])
def test_samples_follow_from_seed_and_number(name):
    family = FAMILIES[name]
    few, more = (
        generate(family.problem, count, 32, seed=5, frames=2, params=dict(family.ranges)) for count in (2, 4)
    )
    assert np.array_equal(few.values, more.values[:2])
    assert np.array_equal(few.params, more.params[:2])
    assert not np.array_equal(few.params, generate(family.problem, 2, 32, 6, frames=2, params=family.ranges).params)


@pytest.mark.parametrize("case", ["burgers1d", "droplet2d"])
def test_hidden_cases_have_the_same_fields_and_no_parameters(case):
    small = ("data.num_samples=4", "data.resolution=16", "data.frames=6")
    given, hidden = (
        prepare(config.task, config.data)
        for config in (
            run_settings(Cell("t", "short", f"{case}_{kind}", "fno", overrides=small)) for kind in ("given", "hidden")
        )
    )
    assert np.array_equal(given.trajectories.values, hidden.trajectories.values)
    assert given.signature().num_params == len(FAMILIES[case].ranges)
    assert hidden.signature().num_params == 0
    assert hidden.history == 3


def test_long_cases_have_ten_times_the_epochs():
    for name in SCALES["long"].cases:
        short, long = (run_settings(Cell("t", scale, name, "fno")).training.epochs for scale in ("short", "long"))
        assert long == 10 * short, name
