"""Files that would run a command if they were unpickled: nothing runs, and they are refused."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from spectrakan.data import load_dataset
from spectrakan.errors import ConfigError, DataFormatError


class Payload:
    """Makes a marker file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "it_ran"


def test_the_payload_works(marker: Path):
    pickle.loads(pickle.dumps(Payload(marker)))  # noqa: S301
    assert marker.exists()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", ["set.pt", "set.npz", "set.h5", "set"])
def test_torch_files(tmp_path: Path, marker: Path, zipped: bool, name: str):
    content = {"values": torch.zeros(2, 3, 4, 1), "more": Payload(marker)}
    torch.save(content, tmp_path / name, _use_new_zipfile_serialization=zipped)
    with pytest.raises(DataFormatError):
        load_dataset(tmp_path / name)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["set.pt", "set.npz", "set.pkl"])
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_bare_pickles(tmp_path: Path, marker: Path, name: str, protocol: int):
    (tmp_path / name).write_bytes(pickle.dumps({"values": Payload(marker)}, protocol))
    with pytest.raises(DataFormatError):
        load_dataset(tmp_path / name)
    assert not marker.exists()


@pytest.mark.parametrize("key", ["values", "times", "schema", "other"])
def test_npz_files_with_objects(tmp_path: Path, marker: Path, key: str):
    arrays = {"values": np.zeros((2, 3, 4, 1)), "times": np.arange(3.0)}
    arrays[key] = np.array([Payload(marker)], dtype=object)
    np.savez(tmp_path / "set.npz", **arrays)
    if key in {"values", "times"}:
        with pytest.raises(DataFormatError, match=f"'{key}'.*object"):
            load_dataset(tmp_path / "set.npz")
    else:
        assert load_dataset(tmp_path / "set.npz").values.shape == (2, 3, 4, 1)
    assert not marker.exists()


def test_npz_members_that_are_pickles_under_a_plain_header(tmp_path: Path, marker: Path):
    body = io.BytesIO()
    np.lib.format.write_array(body, np.array([Payload(marker)], dtype=object), allow_pickle=True)
    disguised = body.getvalue().replace(b"'|O'", b"'<f8'")
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("values.npy", disguised)
    with pytest.raises(DataFormatError):
        load_dataset(tmp_path / "set.npz")
    assert not marker.exists()


def test_mapping_with_a_yaml_object(tmp_path: Path, marker: Path):
    np.savez(tmp_path / "set.npz", field=np.zeros((2, 3, 4)))
    (tmp_path / "map.yaml").write_text(f"values: !!python/object/apply:os.mkdir ['{marker}']\n")
    with pytest.raises(ConfigError, match="not valid YAML"):
        load_dataset(tmp_path / "set.npz", mapping=tmp_path / "map.yaml")
    assert not marker.exists()


def test_matlab_objects_are_left_out(tmp_path: Path):
    arrays = {"coeff": np.zeros((2, 4, 4)), "sol": np.ones((2, 4, 4)), "note": {"a": "text"}}
    scipy.io.savemat(tmp_path / "set.mat", arrays)
    assert float(np.asarray(load_dataset(tmp_path / "set.mat").values).min()) == 1.0
