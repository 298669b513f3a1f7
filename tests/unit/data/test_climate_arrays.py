from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from climate_days import days_in

from spectrakan.data.load import load_dataset
from spectrakan.errors import DataFormatError
from tools.make_climate import pack


def gridded(days: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "tas": rng.uniform(260, 300, (days, 3, 5)).astype(np.float32),
        "ps": rng.uniform(95_000, 103_000, (days, 3, 5)).astype(np.float32),
        "lat": np.array([50.0, 45.0, 40.0]),
        "lon": np.array([0.0, 5.0, 10.0, 15.0, 20.0]),
        "time": np.array([f"1991-01-{day + 1:02d}" for day in range(days)]),
    }


def test_fields_are_put_south_to_north_in_hectopascal(tmp_path: Path):
    arrays = gridded()
    np.savez(tmp_path / "a.npz", **arrays)
    days = days_in(tmp_path / "a.npz")
    np.testing.assert_array_equal(days.temperature, arrays["tas"][:, ::-1])
    np.testing.assert_allclose(days.pressure, arrays["ps"][:, ::-1] / 100, rtol=1e-6)
    assert days.latitude.tolist() == [40.0, 45.0, 50.0]


def test_other_names_are_refused_with_what_there_is(tmp_path: Path):
    arrays = gridded()
    renamed = {{"tas": "warmth", "ps": "weight"}.get(name, name): value for name, value in arrays.items()}
    np.savez(tmp_path / "a.npz", **renamed)
    with pytest.raises(DataFormatError, match=r"holds warmth \(4, 3, 5\), weight .*mapping"):
        days_in(tmp_path / "a.npz")


def test_packed_fields_are_unpacked(tmp_path: Path):
    arrays = gridded()
    packed = pack("tas", arrays["tas"], 0.05) | pack("ps", arrays["ps"] / 100, 0.05)
    np.savez_compressed(tmp_path / "a.npz", **(arrays | packed))
    days = days_in(tmp_path / "a.npz")
    assert np.abs(days.temperature - arrays["tas"][:, ::-1]).max() <= 0.02503
    assert np.abs(days.pressure - arrays["ps"][:, ::-1] / 100).max() <= 0.0251


@pytest.mark.parametrize("scale", [1.0, 1e-3], ids=["Pa", "kPa"])
@pytest.mark.parametrize("flat", [True, False])
def test_the_72_by_72_file_is_read_with_its_own_grid(tmp_path: Path, scale: float, flat: bool):
    latitude = np.linspace(90, -87.5, 72)
    longitude = np.linspace(0, 355, 72)
    warm = 300 - 0.5 * np.abs(latitude)[:, None] + 0.01 * longitude
    heavy = 101_000 + 20 * latitude[:, None] - longitude
    shape = (2, 72 * 72) if flat else (2, 72, 72)
    stack = {"U_train": np.stack([warm, warm + 1]), "S_train": np.stack([heavy, heavy + 100]) * scale}
    points = np.stack(np.meshgrid(longitude / 360, (latitude + 90) / 180), -1).reshape(-1, 2)
    np.savez(
        tmp_path / "weather_dataset.npz",
        X_train=points,
        Y_train=points,
        **{name: value.reshape(shape) for name, value in stack.items()},
    )
    days = days_in(tmp_path / "weather_dataset.npz")
    assert (days.latitude[0], days.latitude[-1], days.longitude[-1]) == (-87.5, 90.0, 355.0)
    np.testing.assert_allclose(days.temperature[0], warm[::-1], rtol=1e-6)
    np.testing.assert_allclose(days.pressure[1], (heavy[::-1] + 100) / 100, rtol=1e-6)
    assert days.grid.boundary == ("wall", "periodic")


def test_a_72_by_72_file_of_another_size_is_refused(tmp_path: Path):
    np.savez(tmp_path / "a.npz", U_train=np.zeros((3, 32, 32, 3)), S_train=np.zeros((3, 100, 32, 32, 3)))
    with pytest.raises(DataFormatError, match="72 x 72 numbers a day"):
        days_in(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lat": None}, "needs its axis, an array named lat or latitude"),
        ({"time": None}, "needs its axis, an array named time"),
        ({"tas": np.zeros((4, 5, 3))}, r"contradict|cell centres along|samples, time and space"),
        ({"tas": np.full((4, 3, 5), "warm")}, "an array of real numbers"),
        ({"lat": np.array(["a", "b", "c"])}, "an array of real numbers"),
        ({"tas": np.zeros((4, 3, 5), np.int16)}, "tas_scale"),
        ({"tas": np.array([None, {}], dtype=object)}, "type object"),
    ],
)
def test_each_defect_has_its_message(tmp_path: Path, change: dict[str, np.ndarray | None], said: str):
    arrays = {name: value for name, value in (gridded() | change).items() if value is not None}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataFormatError, match=said):
        days_in(tmp_path / "a.npz")


def test_damaged_bytes_give_one_kind_of_error_or_a_valid_set(tmp_path: Path):
    np.savez_compressed(tmp_path / "whole.npz", **gridded())
    whole = (tmp_path / "whole.npz").read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for trial in range(150):
        content = bytearray(whole)
        if trial % 3 == 0:
            content = content[: rng.integers(0, len(whole))]
        else:
            for place in rng.integers(0, len(whole), 4):
                content[place] ^= 1 << rng.integers(0, 8)
        (tmp_path / "a.npz").write_bytes(content)
        try:
            days = days_in(tmp_path / "a.npz")
        except DataFormatError:
            refused += 1
        else:
            assert np.isfinite(days.pressure).all()
    assert refused > 75


def test_load_dataset_knows_a_climate_archive_by_its_arrays(tmp_path):
    path = tmp_path / "days.npz"
    warmth, weight = np.random.default_rng(0).normal(280, 5, (6, 8, 16)), np.full((6, 8, 16), 98_500.0)
    latitude, longitude = np.linspace(-78.75, 78.75, 8), np.arange(16) * 22.5
    np.savez(path, temperature=warmth, pressure=weight, lat=latitude, lon=longitude, day=np.arange(6))
    found = load_dataset(path)
    assert found.name == "climate2d"
    assert np.allclose(np.asarray(found.inputs)[:, 0, :, :, 0], warmth, rtol=1e-6)
    assert np.allclose(np.asarray(found.values), 985.0)
