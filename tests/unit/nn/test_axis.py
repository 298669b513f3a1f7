"""What is kept from call to call: the same objects, within a number of bytes."""

from __future__ import annotations

import pytest
import torch

import spectrakan as sk
from spectrakan.nn import axis
from spectrakan.nn.axis import axis_transform, kept, uniform_axis, wave_transform


def held_bytes() -> int:
    return sum(size for _, size in axis._cache.values())


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch):
    monkeypatch.setattr(axis, "_cache", type(axis._cache)())


def test_the_same_arguments_give_the_same_object_and_other_types_another():
    like = torch.zeros(3)
    first = axis_transform(uniform_axis(16, True), "fourier", 4, like)
    assert axis_transform(uniform_axis(16, True), "fourier", 4, torch.ones(2, 2)) is first
    assert axis_transform(uniform_axis(16, True), "fourier", 4, like.double()) is not first
    assert axis_transform(uniform_axis(17, True), "fourier", 4, like) is not first


def test_many_resolutions_stay_within_the_bytes(monkeypatch):
    monkeypatch.setattr(axis, "CACHE_BYTES", 2**20)
    like = torch.zeros(1)
    for cells in range(100, 200):
        wave_transform(uniform_axis(cells, True), like)  # 8 n² bytes each
    assert 2**19 < held_bytes() <= 2**20
    last = wave_transform(uniform_axis(199, True), like)
    assert wave_transform(uniform_axis(199, True), like) is last, "the latest is kept"


def test_the_least_recently_used_goes_first(monkeypatch):
    monkeypatch.setattr(axis, "CACHE_BYTES", 3 * 8 * 100)
    made = []

    @kept
    def table(number: int) -> torch.Tensor:
        made.append(number)
        return torch.zeros(100, dtype=torch.float64)

    for number in (1, 2, 3, 1, 4, 1, 2):
        table(number)
    assert made == [1, 2, 3, 4, 2]


def test_a_model_on_many_grids_holds_no_more_than_the_bytes(monkeypatch):
    monkeypatch.setattr(axis, "CACHE_BYTES", 2**21)
    signature = sk.OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    models = [sk.build_model(name, signature) for name in ("lno", "spectrakan", "deepokan")]
    with torch.no_grad():
        for cells in range(64, 320, 8):
            for model in models:
                model(torch.randn(1, 1, cells, 1))
    assert held_bytes() <= 2**21
