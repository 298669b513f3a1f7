"""Laws of splits, windows and loaders, tried on many cases."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spectrakan.data.loader import Loader
from spectrakan.data.split import PARTS, SplitSettings, duplicate_groups, split_groups
from spectrakan.data.windows import Windows, WindowSettings
from spectrakan.errors import ConfigError
from spectrakan.fields import FieldSpec, Grid, Trajectories

labels = st.lists(st.integers(0, 12), min_size=1, max_size=60)
shares = st.tuples(st.integers(1, 10), *[st.integers(0, 10)] * 3).map(lambda parts: [p / sum(parts) for p in parts])


def frames_of(values: np.ndarray) -> Trajectories:
    return Trajectories(values, Grid.uniform((2,)), np.arange(float(values.shape[1])), (FieldSpec("u"),))


def groups_of(names: list[int]) -> tuple[tuple[int, ...], ...]:
    values = np.repeat(np.array(names, dtype=float), 4).reshape(-1, 2, 2, 1)
    return duplicate_groups(frames_of(values))


@given(labels)
def test_groups_are_the_classes_of_equal_samples(names: list[int]):
    groups = groups_of(names)
    assert sorted(index for group in groups for index in group) == list(range(len(names)))
    assert sorted({names[group[0]] for group in groups}) == sorted(set(names))
    assert all(names[index] == names[group[0]] for group in groups for index in group)


@given(labels, shares, st.booleans(), st.integers(0, 3), st.integers(0, 2**32))
@settings(max_examples=300)
def test_a_split_is_a_partition_with_no_copy_on_two_sides(names, parts, time_ordered, gap, seed):
    train, validation, calibration, test = parts
    choices = SplitSettings(
        train=train, validation=validation, calibration=calibration, test=test,
        by="sample_order" if time_ordered else "trajectory", gap=gap if time_ordered else 0,
    )  # fmt: skip
    groups = groups_of(names)
    try:
        made = split_groups(groups, choices, seed)
    except ConfigError:
        assert time_ordered or len(groups) < sum(share > 0 for share in parts)
        return
    members = [index for name in (*PARTS, "unused") for index in made.part(name)]
    assert sorted(members) == list(range(len(names)))
    if not time_ordered:
        assert made.unused == ()
    sides = [{names[index] for index in made.part(name)} for name in PARTS]
    assert sum(len(side) for side in sides) == len(set().union(*sides))
    assert all(made.part(name) for name, share in zip(PARTS, parts, strict=True) if share)


@given(st.integers(2, 200), shares, st.integers(0, 100))
def test_distinct_samples_meet_their_shares_to_one_sample(count, parts, seed):
    choices = SplitSettings(train=parts[0], validation=parts[1], calibration=parts[2], test=parts[3])
    wanted = sum(share > 0 for share in parts)
    if count < 11 * wanted:
        return
    made = split_groups(tuple((index,) for index in range(count)), choices, seed)
    for name, share in zip(PARTS, parts, strict=True):
        assert abs(len(made.part(name)) - share * count) <= 1 or len(made.part(name)) == 1


@given(st.integers(1, 4), st.integers(2, 12), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.data())
def test_windows_cover_every_start_that_fits_and_no_other(samples, frames, history, horizon, stride, data):
    choices = WindowSettings(history=history, horizon=horizon, strides=(stride,))
    if choices.length(stride) > frames:
        return
    values = np.arange(float(samples * frames * 2)).reshape(samples, frames, 2, 1)
    chosen = data.draw(st.lists(st.integers(0, samples - 1), min_size=1, unique=True))
    windows = Windows(frames_of(values), chosen, choices)
    where = list(zip(*(array.tolist() for array in windows.locate(range(len(windows)))), strict=True))
    expected = [
        (s, a, stride) for s in chosen for a in range(frames) if a + (history + horizon - 1) * stride < frames
    ]
    assert where == expected
    number = data.draw(st.integers(0, len(windows) - 1))
    sample, start, _ = where[number]
    batch = windows.gather([number])
    whole = [*batch.inputs[0, :, 0, 0].tolist(), *batch.targets[0, :, 0, 0].tolist()]
    assert whole == [values[sample, start + k * stride, 0, 0] for k in range(history + horizon)]


def windows_of(count: int) -> Windows:
    return Windows(frames_of(np.arange(float(count * 4)).reshape(count, 2, 2, 1)), range(count))


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 99), st.integers(0, 30))
def test_a_resumed_loader_goes_on_as_the_uninterrupted_one(count, batch_size, seed, stop):
    whole, interrupted, resumed = (Loader(windows_of(count), batch_size, seed) for _ in range(3))

    def stream(loader: Loader, batches: int) -> list[list[float]]:
        read: list[list[float]] = []
        while len(read) < batches:
            for batch in loader:
                read.append(batch.inputs.flatten().tolist())
                if len(read) == batches:
                    break
        return read

    expected = stream(whole, stop + 10)
    first = stream(interrupted, stop)
    resumed.restore(interrupted.state())
    assert first + stream(resumed, 10) == expected


@given(st.integers(1, 60), st.integers(1, 7), st.integers(1, 5), st.integers(0, 99))
def test_processes_share_windows_without_overlap(count, batch_size, world_size, seed):
    if count < world_size:
        return
    read: list[list[list[float]]] = []
    for rank in range(world_size):
        loader = Loader(windows_of(count), batch_size, seed, rank=rank, world_size=world_size)
        read.append([(batch.inputs[:, 0, 0, 0] / 4).tolist() for batch in loader])
    flat = [window for rank in read for batch in rank for window in batch]
    assert len(set(flat)) == len(flat)
    assert count - len(flat) == count % world_size
    lengths = {tuple(len(batch) for batch in rank) for rank in read}
    assert len(lengths) == 1
