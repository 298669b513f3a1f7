from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from darcy_operator import darcy_operator

from spectrakan.config import build_settings
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.pde.darcy2d import (
    DarcyParameters,
    draw_coefficient,
    solve,
)

PARAMETERS = DarcyParameters()


def centre_of_the_poisson_solution() -> float:
    """u(1/2, 1/2) of -Laplace u = 1 on the unit square by its sine series."""
    odd = np.arange(1, 400, 2)
    m, n = np.meshgrid(odd, odd)
    signs = (-1.0) ** ((m - 1) // 2 + (n - 1) // 2)
    return float((16 * signs / (math.pi**4 * m * n * (m**2 + n**2))).sum())


@pytest.mark.parametrize("discretisation", [("harmonic", "face"), ("arithmetic", "ghost")])
def test_the_equation_holds_in_every_cell(discretisation: tuple[str, str], generator: torch.Generator):
    face_mean, wall = discretisation
    chosen = build_settings(DarcyParameters, {"face_mean": face_mean, "wall": wall})
    medium = draw_coefficient(4, (64, 64), chosen, generator)
    pressure = solve(medium, (0.0,), chosen)
    flow = darcy_operator(pressure[:, 0, ..., 0], medium[..., 0], chosen)
    assert float((flow - 1.0).abs().max()) < 1e-10
    assert float(pressure.min()) > 0  # the maximum principle


def test_uniform_medium_gives_the_series_solution():
    pressure = solve(torch.ones(1, 65, 65, 1, dtype=torch.float64), (0.0,), PARAMETERS)
    assert float(pressure[0, 0, 32, 32, 0]) == pytest.approx(centre_of_the_poisson_solution(), rel=1e-3)


def test_pressure_scales_with_the_source_and_against_the_permeability(generator: torch.Generator):
    medium = draw_coefficient(2, (24, 20), PARAMETERS, generator)
    pressure = solve(medium, (0.0,), PARAMETERS)
    torch.testing.assert_close(solve(medium, (0.0,), DarcyParameters(beta=7.0)), 7 * pressure)
    torch.testing.assert_close(solve(3 * medium, (0.0,), PARAMETERS), pressure / 3)
    turned = solve(medium.transpose(1, 2), (0.0,), PARAMETERS)
    torch.testing.assert_close(turned, pressure.transpose(2, 3))


def test_any_source_may_be_given_as_a_second_channel(generator: torch.Generator):
    medium = draw_coefficient(2, (16, 16), PARAMETERS, generator)
    source = torch.randn(2, 16, 16, 1, dtype=torch.float64, generator=generator)
    both = torch.cat([medium, source], dim=-1)
    pressure = solve(both, (0.0,), PARAMETERS)
    flow = darcy_operator(pressure[:, 0, ..., 0], medium[..., 0], PARAMETERS)
    torch.testing.assert_close(flow, source[..., 0], rtol=1e-10, atol=1e-10)


def test_layers_across_the_flow_conduct_as_their_harmonic_mean():
    """1 and 1/9 in series make 1/5; the arithmetic mean would be 5/9."""
    layered = torch.ones(1, 8, 8, dtype=torch.float64)
    layered[:, ::2] = 1 / 9
    place = torch.arange(8, dtype=torch.float64)[:, None].expand(8, 8)[None]
    assert float(darcy_operator(place, layered, PARAMETERS)[:, 1:-1, 1:-1].abs().max()) < 1e-10
    bent = darcy_operator(place**2, layered, PARAMETERS)[0, 3, 3]
    assert float(bent) == pytest.approx(-2 * 0.2 * 64)
    arithmetic = darcy_operator(place**2, layered, DarcyParameters(face_mean="arithmetic"))[0, 3, 3]
    assert float(arithmetic) == pytest.approx(-2 * 5 / 9 * 64)


def test_media_are_the_same_functions_at_every_resolution():
    coarse, fine = (
        draw_coefficient(20, (size, size), PARAMETERS, torch.Generator().manual_seed(3)) for size in (32, 96)
    )
    # The mean that bumps are cut at differs a little between grids.
    assert float((coarse == fine[:, 1::3, 1::3]).double().mean()) > 0.995
    assert all(set(sample.unique().tolist()) == {0.1, 1.0} for sample in coarse)


def test_mistakes_are_named():
    medium = torch.ones(1, 4, 4, 1, dtype=torch.float64)
    with pytest.raises(ConfigError, match="positive, finite coefficient"):
        solve(-medium, (0.0,), PARAMETERS)
    with pytest.raises(ConfigError, match="positive, finite coefficient"):
        solve(medium * math.nan, (0.0,), PARAMETERS)
    with pytest.raises(ShapeError, match="coefficient and source"):
        solve(medium.expand(1, 4, 4, 3), (0.0,), PARAMETERS)
    with pytest.raises(ConfigError, match="lower permeability"):
        DarcyParameters(low=2.0)
