"""Batches come in a seeded order, are shared by processes and continue where they stopped."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spectrakan.data.loader import Loader
from spectrakan.data.windows import Windows, WindowSettings
from spectrakan.errors import ConfigError
from spectrakan.fields import FieldSpec, Grid, Trajectories


def windows(samples: int) -> Windows:
    """Windows whose input value is the sample's number."""
    values = np.broadcast_to(np.arange(float(samples)).reshape(-1, 1, 1, 1), (samples, 2, 3, 1)).copy()
    frames = Trajectories(values, Grid.uniform((3,)), np.arange(2.0), (FieldSpec("u"),))
    return Windows(frames, range(samples), WindowSettings(history=1, horizon=1))


def seen(loader: Loader) -> list[list[int]]:
    """One epoch as the samples of each batch."""
    return [batch.inputs[:, 0, 0, 0].int().tolist() for batch in loader]


def test_an_epoch_has_every_window_once_with_a_short_last_batch():
    loader = Loader(windows(7), batch_size=3, seed=5)
    order = np.random.default_rng((5, 0)).permutation(7).tolist()
    assert seen(loader) == [order[:3], order[3:6], order[6:]]
    assert loader.state() == {"epoch": 1, "batch": 0}


def test_each_epoch_has_its_own_order_of_the_same_windows():
    loader = Loader(windows(20), batch_size=8, seed=3)
    first, second = seen(loader), seen(loader)
    assert first != second
    assert sorted(flat(first)) == sorted(flat(second)) == list(range(20))
    again = Loader(windows(20), batch_size=8, seed=3)
    assert [seen(again), seen(again)] == [first, second]


def flat(batches: list[list[int]]) -> list[int]:
    return [sample for batch in batches for sample in batch]


@pytest.mark.parametrize("count", [20, 22, 21])
def test_two_processes_see_what_one_with_the_doubled_batch_sees(count: int):
    one = seen(Loader(windows(count), batch_size=4))
    ranks = [seen(Loader(windows(count), batch_size=2, rank=rank, world_size=2)) for rank in (0, 1)]
    together = [left + right for left, right in zip(*ranks, strict=True)]
    # An odd window out is left for another epoch, so that no process waits for the other.
    assert flat(together) == flat(one)[: count - count % 2]
    assert len(ranks[0]) == len(ranks[1])


def test_a_foreign_state_is_refused():
    loader = Loader(windows(4), batch_size=2)
    with pytest.raises(ConfigError, match="names batch 3"):
        loader.restore({"epoch": 0, "batch": 3})


def test_more_processes_than_windows_are_refused():
    with pytest.raises(ConfigError, match="no batch to each of 5"):
        Loader(windows(4), world_size=5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="page-locked memory needs a CUDA device")
def test_pinned_batches_are_pinned():
    assert next(iter(Loader(windows(4), pin_memory=True))).inputs.is_pinned()
