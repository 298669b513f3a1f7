"""`.pt` dictionaries, in torch's new and old format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from spectrakan.data import load_dataset
from spectrakan.errors import DataFormatError


@pytest.mark.parametrize("zipped", [True, False])
def test_pairs_as_neuraloperator_saves_them(tmp_path: Path, generator: torch.Generator, zipped: bool):
    pair = {
        "x": torch.rand(3, 6, 5, generator=generator) > 0.5,
        "y": torch.rand(3, 6, 5, generator=generator),
    }
    torch.save(pair, tmp_path / "darcy.pt", _use_new_zipfile_serialization=zipped)
    found = load_dataset(tmp_path / "darcy.pt")
    assert found.inputs is not None
    np.testing.assert_array_equal(np.asarray(found.values)[:, 0, ..., 0], pair["y"].numpy())
    np.testing.assert_array_equal(np.asarray(found.inputs)[:, 0, ..., 0], pair["x"].numpy())
    assert (found.input_fields[0].name, found.fields[0].name) == ("input", "output")


def test_nested_dictionaries_and_lone_tensors(tmp_path: Path, generator: torch.Generator):
    values = torch.randn(2, 3, 8, 1, generator=generator)
    torch.save({"data": {"u": values}, "note": "hello"}, tmp_path / "nested.pt")
    mapping = {"values": [{"array": "data/u", "axes": ["sample", "time", "x", "channel"], "fields": ["u"]}]}
    found = load_dataset(tmp_path / "nested.pt", mapping=mapping)
    np.testing.assert_array_equal(np.asarray(found.values), values.numpy())
    torch.save(values, tmp_path / "lone.pt")
    np.testing.assert_array_equal(np.asarray(load_dataset(tmp_path / "lone.pt").values), values.numpy())


def test_other_contents_are_refused(tmp_path: Path):
    torch.save([1, 2, 3], tmp_path / "list.pt")
    with pytest.raises(DataFormatError, match="expected a dictionary of tensors, found list"):
        load_dataset(tmp_path / "list.pt")
    torch.save({"values": torch.zeros(2, 2, 4, 1, dtype=torch.bfloat16)}, tmp_path / "short.pt")
    with pytest.raises(DataFormatError, match=r"'values'.*BFloat16"):
        load_dataset(tmp_path / "short.pt")
