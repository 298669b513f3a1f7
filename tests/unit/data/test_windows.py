"""Windows hold the frames that their number names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from spectrakan.data.windows import Windows, WindowSettings, signature
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories


class FromFile:
    """An array that is not in memory: it only knows how to read one sample's slice."""

    def __init__(self, values: np.ndarray) -> None:
        self.stored = values
        self.reads: list[Any] = []

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.stored.dtype

    def __getitem__(self, key: Any, /) -> Any:
        self.reads.append(key)
        return self.stored[key]

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> np.ndarray:
        raise AssertionError("the whole array must not be read")


def clock(samples: int, frames: int, lazy: bool = False, **more: Any) -> Trajectories:
    """Frames whose value tells sample and time: 100 sample + frame."""
    values = (100.0 * np.arange(samples)[:, None] + np.arange(frames)).reshape(samples, frames, 1, 1)
    values = np.broadcast_to(values, (samples, frames, 4, 1)).copy()
    array = FromFile(values) if lazy else values
    grid = Grid.uniform((4,), boundary=("periodic",))
    return Trajectories(array, grid, np.arange(float(frames)), (FieldSpec("u"),), **more)


@pytest.mark.parametrize("lazy", [False, True])
def test_stride_history_and_horizon_pick_the_frames(lazy: bool):
    windows = Windows(clock(3, 10, lazy), [2, 0], WindowSettings(history=2, horizon=2, strides=(2,)))
    assert len(windows) == 2 * 4  # starts 0..3: the last window ends at frame 3 + 6 = 9
    batch = windows.gather([3, 4])
    assert batch.inputs[..., 0, 0].tolist() == [[203.0, 205.0], [0.0, 2.0]]
    assert batch.targets[..., 0, 0].tolist() == [[207.0, 209.0], [4.0, 6.0]]
    assert batch.inputs.dtype == torch.float32


def test_first_starts_give_one_window_a_sample():
    windows = Windows(clock(3, 10), [0, 1, 2], WindowSettings(history=4, horizon=3, starts="first"))
    assert len(windows) == 3
    assert windows.gather([1]).inputs[0, :, 0, 0].tolist() == [100.0, 101.0, 102.0, 103.0]


def test_a_steady_task_maps_its_input_fields_to_its_solution():
    inputs = np.arange(6.0).reshape(3, 1, 2, 1)
    values = np.stack([inputs[..., 0] * 10, inputs[..., 0] * 20], axis=-1)
    made = Trajectories(
        values, Grid.uniform((2,), boundary=("dirichlet",)), np.zeros(1),
        (FieldSpec("p"), FieldSpec("q")), inputs=inputs, input_fields=(FieldSpec("a"),),
    )  # fmt: skip
    batch = Windows(made, [1, 2], dtype=torch.float64).gather([1])
    assert batch.inputs.flatten().tolist() == [4.0, 5.0]
    assert batch.targets.flatten().tolist() == [40.0, 80.0, 50.0, 100.0]
    assert signature(made, 1) == OperatorSignature(
        space_dims=1,
        history=1,
        in_channels=1,
        out_channels=2,
        boundary=("dirichlet",),
        steady=True,
        in_fields=tuple(f.name for f in made.input_fields),
        out_fields=tuple(f.name for f in made.fields),
    )
    with pytest.raises(ConfigError, match="history must be 1"):
        signature(made, 2)


def test_parameters_travel_with_their_sample():
    made = clock(3, 4, params=np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), param_names=("nu", "rho"))
    windows = Windows(made, [2, 1], WindowSettings(history=1, horizon=1))
    params = windows.gather([0, 5]).params
    assert params is not None
    assert params.tolist() == [[5.0, 6.0], [3.0, 4.0]]
    assert signature(made, 1) == OperatorSignature(
        space_dims=1,
        history=1,
        in_channels=1,
        out_channels=1,
        num_params=2,
        boundary=("periodic",),
        in_fields=("u",),
        out_fields=("u",),
        param_names=windows.trajectories.param_names,
    )


def test_a_file_is_read_only_where_needed():
    made = clock(50, 20, lazy=True)
    Windows(made, range(50), WindowSettings(history=2, horizon=1)).gather([0, 18 * 7 + 3])
    assert isinstance(made.values, FromFile)
    assert made.values.reads == [(0, slice(0, 3, 1)), (7, slice(3, 6, 1))]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="need 12 frames, the trajectories have 10"):
        Windows(clock(1, 10), [0], WindowSettings(history=11, horizon=1))
    with pytest.raises(ConfigError, match="no samples"):
        Windows(clock(1, 10), [])
    with pytest.raises(ShapeError, match=r"0\.\.0"):
        Windows(clock(1, 10), [1])


@pytest.mark.parametrize("lazy", [False, True])
def test_the_time_step_is_an_input_and_several_may_be_trained_on(lazy: bool):
    made = clock(2, 7, lazy, params=np.array([[5.0], [6.0]]), param_names=("nu",))
    windows = Windows(made, [0, 1], WindowSettings(strides=(1, 3), dt_input=True))
    assert signature(made, 1, dt_input=True).param_names == ("nu", "dt")
    step = float(made.times[1] - made.times[0])
    batch = windows.gather(range(len(windows)))
    assert len(windows) == 2 * (6 + 4)
    assert batch.params is not None
    assert batch.times is not None
    found = {(float(p), round(float(d), 6)) for p, d in batch.params}
    assert found == {(nu, round(s * step, 6)) for nu in (5.0, 6.0) for s in (1, 3)}
    assert torch.allclose(batch.params[:, 1].double(), batch.times[:, 1] - batch.times[:, 0])
    with pytest.raises(ConfigError, match="need dt_input=true"):
        WindowSettings(strides=(1, 2))
