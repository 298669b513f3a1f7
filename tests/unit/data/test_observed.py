"""The observed cells are few, fixed and spread evenly."""

from __future__ import annotations

import pytest
import torch

from spectrakan.config import build_settings
from spectrakan.data.windows import WindowSettings, observed_cells
from spectrakan.errors import ConfigError


def test_each_sample_has_its_own_fixed_cells_whatever_the_batch():
    both = observed_cells([4, 9], (6, 5), 0.4, seed=2)
    assert both.shape == (2, 1, 6, 5, 1)
    assert both.sum(dim=(1, 2, 3, 4)).tolist() == [12, 12]
    assert torch.equal(both[1:], observed_cells([9], (6, 5), 0.4, seed=2))
    assert not torch.equal(both[0], both[1])
    assert not torch.equal(both, observed_cells([4, 9], (6, 5), 0.4, seed=3))


def test_cells_are_seen_equally_often():
    share = observed_cells(range(2000), (8,), 0.25).double().mean(dim=0).flatten()
    # Standard deviation of a mean of 2000 draws is 0.0097; five of them.
    assert float((share - 0.25).abs().max()) < 0.05


def test_at_least_one_cell_is_seen():
    assert int(observed_cells([0], (3,), 1e-9).sum()) == 1


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1])
def test_a_share_is_between_nothing_and_all(fraction: float):
    with pytest.raises(ConfigError, match="observed_fraction"):
        build_settings(WindowSettings, {"observed_fraction": fraction})
