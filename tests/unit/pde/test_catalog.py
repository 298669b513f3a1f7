"""Every listed equation is known by its own name, can be drawn, solved and judged with its defaults."""

from __future__ import annotations

import pytest
import torch

from spectrakan.pde.catalog import EQUATIONS


@pytest.mark.parametrize("name", sorted(EQUATIONS))
def test_an_equation_works_through_its_description_alone(name, generator):
    equation = EQUATIONS[name]
    assert equation.name == name
    parameters = equation.parameters()
    cells = tuple(32 for _ in equation.resolution)
    initial = equation.sample(2, cells, parameters, generator)
    assert initial.dtype == torch.float64
    times = equation.times[:2]
    frames = equation.solve(initial, times, parameters)
    assert frames.shape == (2, len(times), *cells, len(equation.fields))
    assert bool(torch.isfinite(frames).all())
    for channel, field in enumerate(equation.fields):
        assert not field.positive or float(frames[..., channel].min()) > 0
    if equation.residual is not None:
        inputs = initial[:, None] if equation.steady else None
        error = equation.residual(frames, inputs, times, parameters)
        assert error.shape == (2, len(times))
        assert bool((error >= 0).all())


@pytest.mark.parametrize("name", sorted(EQUATIONS))
def test_one_seed_gives_one_set_of_samples(name):
    equation = EQUATIONS[name]
    cells = tuple(16 for _ in equation.resolution)
    first, again, other = (
        equation.sample(3, cells, equation.parameters(), torch.Generator().manual_seed(seed)) for seed in (5, 5, 6)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
