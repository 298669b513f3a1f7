from __future__ import annotations

import threading

import pytest
import torch

from spectrakan.numerics.time_integration import for_each_part, samples_at_once


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_every_sample_is_worked_on_once(two_threads: None):
    for num_samples, at_once in ((0, 3), (1, 3), (7, 3), (9, 3), (64, 9)):
        seen = torch.zeros(num_samples)
        sizes = []

        def work(part: slice, seen: torch.Tensor = seen, sizes: list[int] = sizes) -> None:
            seen[part].add_(1)
            sizes.append(part.stop - part.start)

        for_each_part(num_samples, at_once, work)
        assert seen.tolist() == [1.0] * num_samples
        assert max(sizes, default=0) <= at_once
    assert sizes == [8] * 8  # 64 samples go evenly onto two threads


def test_parts_run_beside_each_other_with_one_thread_each(two_threads: None):
    meeting = threading.Barrier(2, timeout=20)  # breaks unless both are there at once
    inside = []

    def work(part: slice) -> None:
        meeting.wait()
        inside.append(torch.get_num_threads())

    for_each_part(2, 1, work)
    assert inside == [1, 1]
    assert torch.get_num_threads() == 2
    later: list[int] = []
    fresh = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    fresh.start()
    fresh.join()
    assert later == [2]


def test_an_error_comes_out_and_the_number_of_threads_comes_back(two_threads: None):
    def work(part: slice) -> None:
        if part.start == 2:
            raise ValueError("third")

    with pytest.raises(ValueError, match="third"):
        for_each_part(6, 1, work)
    assert torch.get_num_threads() == 2


def test_a_part_fits_the_cache_but_never_is_empty():
    batch = torch.zeros(100, 4)
    assert samples_at_once(batch, 2**12) == 32
    assert samples_at_once(batch, 2**30) == 1
    assert samples_at_once(batch.to("meta"), 2**30) == 100
