"""Folders that lie about their model cost no memory and no time, and raise one kind of error."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path

import pytest
import torch

import spectrakan as sk
from spectrakan.errors import DataFormatError
from spectrakan.storage import Bundle, load_bundle, save_bundle

SIGNATURE = sk.OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1)


@pytest.fixture
def folder(tmp_path) -> Path:
    torch.manual_seed(0)
    model = sk.build_model("spectrakan", SIGNATURE, width=4, num_modes=3, num_layers=1)
    frames = torch.randn(6, 3, 16, 1)
    model.fit_statistics(frames[:, :2], frames[:, 2:])
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def resaved(folder: Path, change) -> Path:
    """The same folder with honest checksums over changed content."""
    bundle = load_bundle(folder)
    document, weights = json.loads(json.dumps(bundle.documents["model"])), dict(bundle.tensors["weights"])
    change(document, weights)
    place = folder.with_name("changed")
    save_bundle(place, Bundle(tensors={"weights": weights}, documents={"model": document}))
    return place


@pytest.mark.parametrize(
    "change",
    [
        lambda d, w: d["config"].update(width=20_000),
        lambda d, w: d["config"].update(width=10**12),
        lambda d, w: d["config"].update(num_layers=10_000_000),
        lambda d, w: d["config"].update(coarse_num_layers=10_000_000),
        lambda d, w: d["config"].update(token_width=10**6),
        lambda d, w: d["config"].update(num_intervals=10**9),
        lambda d, w: d["signature"].update(history=10**9),
        lambda d, w: d["signature"].update(num_params=10**9),
        lambda d, w: d.update(name=["spectrakan"]),
        lambda d, w: d.update(name=None),
        lambda d, w: d.update(stages={"predict": "oracle"}),
        lambda d, w: d.update(config=None),
        lambda d, w: d.update(signature=[]),
    ],
    ids=[
        "width", "width beyond sizes", "layers", "coarse layers", "token", "intervals", "history", "params",
        "name a list", "no name", "stages", "no config", "signature a list",
    ],
)  # fmt: skip
def test_a_model_is_compared_before_it_is_allocated(folder, change):
    changed = resaved(folder, change)
    sk.from_pretrained(folder)  # what torch imports at its first tensor without memory is not counted
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(DataFormatError):
        sk.from_pretrained(changed)
    taken, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 5
    assert peak < 2**27


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.update({"readout.out.bias": torch.tensor([float("nan")])}), "NaN|finite"),
        (lambda w: w.update({"readout.out.bias": torch.tensor([float("inf")])}), "finite"),
        (lambda w: w.update({"readout.out.bias": torch.zeros(1, dtype=torch.complex64)}), "complex64"),
        (lambda w: w.update({"readout.out.bias": torch.zeros(1).to(torch.float8_e4m3fn)}), "float8"),
        (lambda w: w.update({"readout.out.bias": torch.zeros(1, dtype=torch.int64)}), "int64"),
        (lambda w: w.update({"readout.out.bias": torch.zeros(1, dtype=torch.float64)}), "mixes"),
    ],
    ids=["nan", "inf", "complex", "float8", "integer", "mixed"],
)
def test_weights_must_be_finite_real_numbers_of_one_type(folder, change, message):
    with pytest.raises(DataFormatError, match=message):
        sk.from_pretrained(resaved(folder, lambda document, weights: change(weights)))


def test_a_run_folder_gives_its_best_model(folder, tmp_path):
    best = tmp_path / "run" / "checkpoints" / "best"
    best.parent.mkdir(parents=True)
    folder.rename(best)
    field = torch.randn(2, 2, 16, 1)
    assert torch.equal(sk.from_pretrained(tmp_path / "run")(field), sk.from_pretrained(best)(field))
