"""Coefficients of an equation, fitted to a history: found for known equations, bounded, the same on every grid."""

from __future__ import annotations

import math

import pytest
import torch

from spectrakan.fields import OperatorSignature
from spectrakan.nn.axis import axes_of
from spectrakan.nn.summary import (
    EPSILON,
    FAINT,
    PHASES,
    WAVES,
    dynamics,
    fitted_law,
    num_coefficients,
    phases,
    solved,
)
from spectrakan.nn.token import FRAME_ERROR, LIMIT, GlobalToken, disturbed

TURN = 2 * math.pi * WAVES
"""Derivatives are in units of those of the shortest wave."""


def law(history: torch.Tensor, cells: int, *, periodic: bool = True) -> torch.Tensor:
    """The law of one field along one axis."""
    both = torch.stack([history, history.square()], dim=-1)
    return fitted_law(both, axes_of((cells,), None, [periodic])[0])


def centres(cells: int) -> torch.Tensor:
    return (torch.arange(cells, dtype=torch.float64) + 0.5) / cells


def carried(cells: int, speed: float, diffusivity: float, step: float) -> torch.Tensor:
    """Three frames of u_t + c u_x = nu u_xx, exact: `(1, 3, cells, 1)`."""
    frames = []
    for time in (0.0, step, 2 * step):
        x = centres(cells) - speed * time
        waves = [
            math.exp(-diffusivity * (2 * math.pi * k) ** 2 * time) * torch.sin(2 * math.pi * k * x + k) / k
            for k in (1, 2, 3)
        ]
        frames.append(0.4 + torch.stack(waves).sum(0))
    return torch.stack(frames)[None, ..., None]


@pytest.mark.parametrize(("speed", "diffusivity"), [(1.0, 0.01), (-2.0, 0.002), (0.3, 0.05)])
def test_speed_and_diffusivity_are_found(speed, diffusivity):
    step = 0.005
    found = law(carried(128, speed, diffusivity, step), 128)[0]
    carrying, product, spreading = found.tolist()
    assert carrying == pytest.approx(-speed * step * TURN, rel=0.05)
    assert spreading == pytest.approx(diffusivity * step * TURN**2, rel=0.05)
    assert abs(product) < 0.05 * abs(carrying)


def test_the_factor_of_a_product_is_found():
    """Burgers' equation u_t + c (u^2 / 2)_x = 0 before shocks, by its characteristics."""
    x, speed, step = centres(256), 1.5, 0.004

    def state(time: float) -> torch.Tensor:
        foot = x.clone()
        for _ in range(60):  # x = foot + c u(foot) t
            foot = x - speed * time * torch.sin(2 * math.pi * foot + 1) / 2
        return torch.sin(2 * math.pi * foot + 1) / 2

    history = torch.stack([state(step * frame) for frame in range(3)])[None, ..., None]
    carrying, product, spreading = law(history, 256)[0].tolist()
    assert product == pytest.approx(-speed * step * TURN / 2, rel=0.05)
    assert abs(carrying) < 0.03 * abs(product)
    assert abs(spreading) < 0.2 * abs(product)


def test_walls_and_other_axes(generator):
    """Between walls too, from means over the other axis: u_t = -(c u)_x with a flux that vanishes at the walls."""
    cells, step, speed = 96, 0.001, 1.5
    x, y = centres(cells)[:, None], torch.rand(7, generator=generator, dtype=torch.float64)
    state = torch.sin(math.pi * x) ** 2 + 0.5 * torch.sin(2 * math.pi * x) ** 2 * x
    angle = math.pi * x
    rate = -speed * (
        2 * math.pi * torch.sin(angle) * torch.cos(angle)
        + 2 * math.pi * torch.sin(2 * angle) * torch.cos(2 * angle) * x
        + 0.5 * torch.sin(2 * angle) ** 2
    )
    frames = [state + step * n * rate + (y - y.mean()) for n in range(3)]
    found = dynamics(torch.stack(frames)[None, ..., None], axes_of((cells, 7), None, [False, False]))
    assert found.shape == (1, num_coefficients(1, 2))
    assert float(found[0, 0]) == pytest.approx(-speed * step * TURN, rel=0.1)


def test_it_does_not_depend_on_the_grid():
    found = [dynamics(carried(n, 1.0, 0.01, 0.01), axes_of((n,), None, [True]))[0] for n in (32, 64, 200)]
    assert torch.allclose(found[0], found[2], rtol=1e-6, atol=1e-8)
    assert torch.allclose(found[1], found[2], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("speed", "diffusivity"), [(2.0, 0.01), (-0.7, 0.03)])
def test_phases_are_exact_for_long_steps(speed, diffusivity):
    """A wave that is carried by an angle and damped by a factor r: cos, sin, and (r^2 - 1) / (r^2 + 1)."""
    step = 0.15
    found = phases(20 * carried(64, speed, diffusivity, step)[:, 1:], axes_of((64,), None, [True])[0])[0].view(
        3, PHASES
    )
    for number in range(PHASES):
        angle = -2 * math.pi * (number + 1) * speed * step
        damped = math.exp(-diffusivity * (2 * math.pi * (number + 1)) ** 2 * step)
        reach = 2 * damped / (1 + damped**2)
        expected = [reach * math.cos(angle), reach * math.sin(angle), (damped**2 - 1) / (damped**2 + 1)]
        assert found[:, number].tolist() == pytest.approx(expected, abs=3e-3)


def test_phases_are_bounded_and_lipschitz(generator):
    """Three numbers of a wave lie in the unit ball; their slope stays below 4 / eps, tried where waves are small."""
    axis, worst = axes_of((16,), None, [True])[0], 0.0
    for size in (1e-3, 1e-2, 1e-1, 1.0):
        pair = size * torch.randn(300, 2, 16, 1, generator=generator, dtype=torch.float64)
        moved = pair + 1e-6 * torch.randn(pair.shape, generator=generator, dtype=torch.float64).sign()
        before, after = phases(pair, axis), phases(moved, axis)
        assert float(before.view(-1, 3, PHASES).norm(dim=1).max()) <= 1.0
        worst = max(worst, float((after - before).abs().max() / 1e-6))
    assert 0.02 / FAINT < worst < 4 / FAINT


def test_numbers_are_bounded_by_the_ridge(generator):
    """|w| <= |d| / (2 eps), tried on small, large and nearly dependent fields."""
    worst = 0.0
    for size in (1e-3, 1e-2, 1e-1, 1.0, 10.0):
        history = size * torch.randn(200, 2, 32, 1, generator=generator, dtype=torch.float64)
        history[:, 0] *= torch.rand(200, 1, 1, generator=generator, dtype=torch.float64) ** 4
        angle = 2 * math.pi * torch.arange(1, WAVES + 1, dtype=torch.float64)[:, None] * centres(32)
        waves = torch.cat([angle.cos(), angle.sin()]) / 32
        change = torch.einsum("kn,bhnf->bhkf", waves, history).diff(dim=1).flatten(1).norm(dim=1)
        ratio = law(history, 32).norm(dim=1) * 2 * EPSILON / change
        worst = max(worst, float(ratio.max()))
    assert 0.3 < worst <= 1.0


def test_elimination_agrees_with_a_solver(generator):
    root = torch.randn(5, 4, 7, 7, generator=generator, dtype=torch.float64)
    matrix = root @ root.transpose(-1, -2) + 1e-2 * torch.eye(7, dtype=torch.float64)
    right = torch.randn(5, 4, 7, generator=generator, dtype=torch.float64)
    assert torch.allclose(solved(matrix, right), torch.linalg.solve(matrix, right), rtol=1e-8)


def test_a_token_of_dynamics_stays_bounded(generator):
    """Whatever a rollout runs into, the summary stays within what training spans by a fixed factor."""
    signature = OperatorSignature(space_dims=1, history=3, in_channels=2, out_channels=2, num_params=1)
    token, axes = GlobalToken(signature, pool="dynamics").double(), axes_of((24,), None, [True])
    history, params = torch.randn(40, 3, 24, 2, generator=generator, dtype=torch.float64), torch.ones(40, 1).double()
    raw = token.raw_summary(history, params, axes)
    token.fit(raw, raw[None])
    assert torch.allclose(token.summary(history, params, axes)[:, :-1].std(0), torch.ones(22).double(), atol=0.2)
    for size in (1e2, 1e6):
        found = token.summary(size * history, size * params, axes)
        assert float(found.abs().max()) <= LIMIT
        assert bool(token(size * history, size * params, axes).isfinite().all())


def test_frame_errors_are_smooth_of_the_stated_size_and_the_same_at_every_resolution():
    """On three times as many cells the same errors, seen at the same points; and in every batch."""
    found = {}
    for cells in (16, 48):
        axes = axes_of((cells, cells), None, [True, False])
        zeros = torch.zeros(2, 2, cells, cells, 3, dtype=torch.float64)
        found[cells] = torch.stack([disturbed(zeros, axes, seed) for seed in range(100)])
    assert float(found[16].square().mean().sqrt()) == pytest.approx(FRAME_ERROR, rel=0.05)
    assert torch.allclose(found[16], found[48][..., 1::3, 1::3, :], atol=1e-12)
    assert torch.equal(found[16][:, 0], found[16][:, 1])


def test_numbers_that_frame_errors_change_are_shrunk(generator):
    """Spread 1 with an error of 1: the scale is 1 / NOISE_SHARE, so the error counts for NOISE_SHARE."""
    signature = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    token = GlobalToken(signature, pool="dynamics").double()
    raw = torch.randn(4000, 2, generator=generator, dtype=torch.float64)
    error = torch.randn(4000, 2, generator=generator, dtype=torch.float64) * torch.tensor([0.0, 1.0])
    token.fit(raw, (raw + error)[None])
    assert torch.allclose(token.scale, torch.tensor([1.0, 101**0.5], dtype=torch.float64), rtol=0.05)
