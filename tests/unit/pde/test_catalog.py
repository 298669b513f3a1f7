"""Every listed equation is known by its own name, can be drawn and solved with its defaults."""

from __future__ import annotations

import pytest
import torch

from spectrakan.data.problems import PROBLEMS

EQUATIONS = {name: problem.equation for name, problem in PROBLEMS.items() if problem.equation is not None}


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


@pytest.mark.parametrize("name", sorted(EQUATIONS))
def test_one_seed_gives_one_set_of_samples(name):
    equation = EQUATIONS[name]
    cells = tuple(16 for _ in equation.resolution)
    first, again, other = (
        equation.sample(3, cells, equation.parameters(), torch.Generator().manual_seed(seed)) for seed in (5, 5, 6)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("name", "values"),
    [("droplet2d", {"gravity": [1.0, 9.81, 5.0]}), ("darcy2d", {"beta": [1.0, -2.0, 0.5]}),
     ("shallow_water2d", {"gravity": [0.5, 1.0, 2.0]})],
)  # fmt: skip
def test_samples_with_values_of_their_own_are_solved_as_one_by_one(name, values):
    """Also where a parameter is not batched and the samples are solved alone."""
    equation = EQUATIONS[name]
    parameters = equation.parameters()
    initial = equation.sample(3, (16, 16), parameters, torch.Generator().manual_seed(0))
    times = equation.times[:4]
    given = {key: torch.tensor(each, dtype=torch.float64) for key, each in values.items()}
    together = equation.solve_varied(initial, times, parameters, given)
    for index in range(3):
        alone = equation.parameters(**{key: each[index] for key, each in values.items()})
        expected = equation.solve(initial[index : index + 1], times, alone)
        torch.testing.assert_close(together[index : index + 1], expected, rtol=1e-12, atol=1e-13)
