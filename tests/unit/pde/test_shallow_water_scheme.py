from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from spectrakan.errors import SpectraKANError
from spectrakan.pde.shallow_water2d import Basin, ShallowWaterParameters, advance, solve, wave_rate

BASIN = Basin(gravity=1.0, spacing=(0.1, 0.2), boundary="outflow")


def still_water(generator: torch.Generator) -> Tensor:
    state = torch.zeros(3, 2, 6, 5, dtype=torch.float64)
    state[0] = 1.0 + torch.rand(2, 6, 5, dtype=torch.float64, generator=generator)
    return state


def test_wave_rate_counts_cells_along_both_axes():
    state = torch.tensor([4.0, 12.0, -4.0], dtype=torch.float64)[:, None, None, None].expand(3, 1, 3, 3)
    # Speeds 3 and -1 with celerity 2: 5 / 0.1 + 3 / 0.2.
    assert float(wave_rate(state, BASIN)) == pytest.approx(65.0)


def test_a_step_of_zero_changes_nothing(generator: torch.Generator):
    state = still_water(generator)
    steps = torch.tensor([0.0, 0.01], dtype=torch.float64)
    later = advance(state, steps, BASIN)
    assert torch.equal(later[:, 0], state[:, 0])
    assert not torch.equal(later[:, 1], state[:, 1])


def test_one_step_of_a_dam_by_hand():
    """Two still levels, 2 and 1: HLL with Einfeldt's speeds between them, worked out on paper.

    Roe's mean is u = 0, c = sqrt(1.5); s- = -sqrt(2), s+ = sqrt(1.5). Mass: -s- s+ / (s+ - s-).
    """
    state = torch.zeros(3, 1, 6, 4, dtype=torch.float64)
    state[0, :, :3], state[0, :, 3:] = 2.0, 1.0
    later = advance(state, torch.tensor([0.01], dtype=torch.float64), BASIN)
    slow, fast = -math.sqrt(2.0), math.sqrt(1.5)
    mass = -slow * fast / (fast - slow)
    push = (fast * 2.0 - slow * 0.5) / (fast - slow)
    ratio = 0.01 / 0.1
    assert later[0, 0, 2, 1].item() == pytest.approx(2.0 - ratio * mass, rel=1e-14)
    assert later[0, 0, 3, 1].item() == pytest.approx(1.0 + ratio * mass, rel=1e-14)
    assert later[1, 0, 2, 1].item() == pytest.approx(ratio * (2.0 - push), rel=1e-14)
    assert later[1, 0, 3, 1].item() == pytest.approx(ratio * (push - 0.5), rel=1e-14)
    assert float(later[2].abs().max()) == 0.0


def test_a_standing_jump_that_loses_no_energy_falls_apart():
    """Deep slow water upstream of shallow quick water, with equal fluxes, would gain energy at rest."""
    deep, shallow = 2.0, 1.0
    discharge = math.sqrt(deep * shallow * (deep + shallow) / 2)
    state = torch.full((3, 1, 40, 3), discharge, dtype=torch.float64)
    state[2] = 0.0
    state[0, :, :20], state[0, :, 20:] = deep, shallow
    for _ in range(40):
        state = advance(state, torch.tensor([0.02], dtype=torch.float64), BASIN)
    assert float(state[0].diff(dim=1).abs().max()) < 0.3
    # The same jump the other way round is a bore at rest, and stays.
    bore = torch.full((3, 1, 40, 3), discharge, dtype=torch.float64)
    bore[2] = 0.0
    bore[0, :, :20], bore[0, :, 20:] = shallow, deep
    later = bore
    for _ in range(40):
        later = advance(later, torch.tensor([0.02], dtype=torch.float64), BASIN)
    torch.testing.assert_close(later, bore, rtol=0.02, atol=0.02)


def test_a_shear_line_that_nothing_crosses_stays_sharp():
    """Waters sliding past each other: the contact wave is resolved exactly."""
    state = torch.ones(3, 1, 8, 4, dtype=torch.float64)
    state[1] = 0.0
    state[2, :, :4] = -1.0
    later = advance(state, torch.tensor([0.02], dtype=torch.float64), BASIN)
    torch.testing.assert_close(later, state, rtol=0, atol=1e-15)


def test_water_that_runs_dry_is_refused(generator: torch.Generator):
    """Thin water that shoots apart: of 48 such fields the scheme keeps most positive, not all."""
    state = torch.rand(48, 12, 12, 3, dtype=torch.float64, generator=generator)
    state[..., 0] += 1e-3
    state[..., 1:] = 1e4 * (2 * state[..., 1:] - 1)
    with pytest.raises(SpectraKANError, match="a cell runs dry"):
        solve(state, (0.002,), ShallowWaterParameters())
