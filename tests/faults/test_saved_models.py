"""A saved model comes back bit for bit, or not at all."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch

import spectrakan as sk
from spectrakan.errors import DataFormatError
from spectrakan.storage import Bundle, load_bundle, save_bundle


@pytest.fixture
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    facts = sk.OperatorSignature(
        space_dims=2,
        history=2,
        in_channels=2,
        out_channels=1,
        num_params=1,
        boundary=("wall", "periodic"),
        steady=True,
    )
    made = sk.build_model("spectrakan", facts, width=8, num_modes=3, num_layers=1, coarse_num_layers=1, basis="auto")
    made.input_units.set(mean=torch.tensor([1.5, -2.0]), scale=torch.tensor([0.3, 7.0]))
    return made


@pytest.fixture
def folder(model, tmp_path) -> Path:
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_round_trip_is_bit_exact(model, tmp_path, dtype):
    model.to(dtype).save_pretrained(tmp_path / "kept")
    back = sk.from_pretrained(tmp_path / "kept")
    assert type(back) is type(model)
    assert back.config == model.config
    assert back.signature == model.signature
    ours, theirs = model.state_dict(), back.state_dict()
    assert ours.keys() == theirs.keys()
    for key, tensor in ours.items():
        assert tensor.dtype == theirs[key].dtype
        assert torch.equal(tensor, theirs[key]), key
    x, params = torch.randn(3, 2, 9, 8, 2, dtype=dtype), torch.randn(3, 1, dtype=dtype)
    assert torch.equal(model(x, params), back(x, params))


def test_every_flipped_bit_is_refused(folder):
    """Every byte of the small files, and bytes all over the weights."""
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        step = max(1, len(content) // 150)
        for place in range(0, len(content), step):
            changed = bytearray(content)
            changed[place] ^= 1 << (place % 8)
            path.write_bytes(changed)
            with pytest.raises(DataFormatError):
                sk.from_pretrained(folder)
        path.write_bytes(content)
    sk.from_pretrained(folder)


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors", "manifest.json"])
def test_a_missing_file_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(DataFormatError, match=r"missing|manifest"):
        sk.from_pretrained(folder)


def test_a_truncated_file_is_refused(folder):
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataFormatError, match="changed or damaged"):
        sk.from_pretrained(folder)


class _Trap:
    """A pickle that creates a file when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


def test_a_pickle_never_runs(folder, tmp_path):
    marker = tmp_path / "ran"
    for name in ("weights.safetensors", "model.json", "manifest.json", "weights.pt"):
        copy = tmp_path / f"copy-{name}"
        shutil.copytree(folder, copy)
        (copy / name).write_bytes(pickle.dumps(_Trap(marker)))
        with pytest.raises(DataFormatError):
            sk.from_pretrained(copy)
    alone = tmp_path / "alone.pkl"
    alone.write_bytes(pickle.dumps(_Trap(marker)))
    with pytest.raises(DataFormatError, match="found a file"):
        sk.from_pretrained(alone)
    assert not marker.exists()


def test_a_foreign_folder_is_refused(tmp_path):
    with pytest.raises(DataFormatError, match="found nothing"):
        sk.from_pretrained(tmp_path / "nowhere")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.json").write_text("{}")
    with pytest.raises(DataFormatError, match=r"no manifest\.json"):
        sk.from_pretrained(tmp_path / "foreign")


def resaved(folder: Path, place: Path, change) -> Path:
    """The same folder with honest checksums over changed content."""
    bundle = load_bundle(folder)
    document, weights = json.loads(json.dumps(bundle.documents["model"])), dict(bundle.tensors["weights"])
    change(document, weights)
    save_bundle(place, Bundle(tensors={"weights": weights}, documents={"model": document}))
    return place


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, w: w.pop("readout.out.bias"), "lacks the weights readout.out.bias"),
        (lambda d, w: w.update(extra=torch.zeros(1)), "no place for: extra"),
        (lambda d, w: w.update({"readout.out.bias": torch.zeros(2)}), r"must have shape \(1,\), got \(2,\)"),
        (lambda d, w: d.update(name="spectrakin"), "did you mean 'spectrakan'"),
        (lambda d, w: d["config"].update(widht=3), "did you mean 'width'"),
        (lambda d, w: d["signature"].pop("history"), "history"),
        (lambda d, w: d.pop("config"), "holds no model"),
        (lambda d, w: d.update(config=[1]), "cannot be built"),
    ],
)
def test_content_that_does_not_fit_is_refused(folder, tmp_path, change, message):
    with pytest.raises(DataFormatError, match=message):
        sk.from_pretrained(resaved(folder, tmp_path / "changed", change))


def test_saving_again_replaces_in_one_step(model, folder):
    with torch.no_grad():
        model.readout.out.bias.fill_(3.0)
    model.save_pretrained(folder)
    assert float(sk.from_pretrained(folder).readout.out.bias.detach()) == 3.0
    assert [path.name for path in folder.parent.iterdir()] == ["model"], "nothing is left behind"


def test_a_crash_between_the_two_renames_loses_nothing(folder):
    folder.rename(folder.with_name(".model.previous"))
    sk.from_pretrained(folder)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused(folder, tmp_path, value):
    def spoil(document, weights):
        weights["readout.out.bias"] = torch.full((1,), value)

    with pytest.raises(DataFormatError, match=r"'readout\.out\.bias' holds a NaN or an infinity"):
        sk.from_pretrained(resaved(folder, tmp_path / "changed", spoil))
