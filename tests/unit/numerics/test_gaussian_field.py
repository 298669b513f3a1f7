from __future__ import annotations

import math

import numpy as np
import torch

from spectrakan.numerics.gaussian_field import cosine_gaussian_field


def test_one_seed_gives_one_function_at_every_resolution():
    coarse = cosine_gaussian_field(3, (8, 12), torch.Generator().manual_seed(5))
    fine = cosine_gaussian_field(3, (24, 36), torch.Generator().manual_seed(5))
    # Every third cell of the fine grid has the centre of a coarse one.
    torch.testing.assert_close(fine[:, 1::3, 1::3], coarse, rtol=1e-12, atol=1e-14)


def test_covariance_is_that_of_the_named_operator(generator: torch.Generator):
    """Along a line, against the eigenfunction sum of (-d²/dx² + tau²)^(-2) with Neumann ends."""
    field = cosine_gaussian_field(20000, (4,), generator, inverse_length=2.0, num_modes=64)
    x = (np.arange(4) + 0.5) / 4
    modes = np.arange(1, 64)
    waves = math.sqrt(2) * np.cos(math.pi * np.outer(x, modes))
    expected = (waves * ((math.pi * modes) ** 2 + 4.0) ** -2.0) @ waves.T
    measured = (field.T @ field / len(field)).numpy()
    np.testing.assert_allclose(measured, expected, atol=0.05 * expected.max())


def test_axes_are_not_mixed_up(generator: torch.Generator):
    """Twice as many cells along the second axis are closer together, so their values differ less."""
    field = cosine_gaussian_field(500, (8, 64), generator)
    steps = [float(field.diff(dim=axis).square().mean()) for axis in (1, 2)]
    assert steps[0] > 10 * steps[1]
