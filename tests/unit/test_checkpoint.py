"""Checkpoints give back every number, refuse every change, and hold nothing that runs."""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import replace

import pytest
import torch

from spectrakan.checkpoint import (
    Checkpoint,
    load_best,
    load_checkpoint,
    load_newest,
    require_same_run,
    save_best,
    save_checkpoint,
)
from spectrakan.errors import DataFormatError, RunError
from spectrakan.fields import OperatorSignature
from spectrakan.models import build_model, from_pretrained
from spectrakan.models.operator import describe_model
from spectrakan.storage import versions

FACTS = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)


def trained(steps=3):
    model = build_model("amfno", FACTS, width=4, num_layers=1, num_modes=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.linspace(0, 1, 16).view(1, 1, 16, 1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return model, optimizer


def checkpoint_of(model, optimizer):
    return Checkpoint(
        model=describe_model(model),
        weights=model.state_dict(),
        optimizer=optimizer.state_dict(),
        position={"step": 3, "best": 0.1 + 0.2},
        average={"a": torch.ones(2)},
        random={"cpu.0": torch.get_rng_state()},
    )


def test_everything_comes_back_bit_for_bit_and_the_optimizer_goes_on(tmp_path):
    model, optimizer = trained()
    saved = checkpoint_of(model, optimizer)
    save_checkpoint(tmp_path / "last", saved)
    found = load_checkpoint(tmp_path / "last")
    assert found.position == saved.position
    assert torch.equal(found.random["cpu.0"], saved.random["cpu.0"])
    twin, other = trained(steps=0)
    twin.load_state_dict(dict(found.weights))
    other.load_state_dict(dict(found.optimizer))
    assert other.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]
    x = torch.ones(1, 1, 16, 1)
    for one, its in ((model, optimizer), (twin, other)):
        its.zero_grad()
        one(x).square().mean().backward()
        its.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_the_same_state_gives_the_same_bytes(tmp_path):
    saved = checkpoint_of(*trained())
    save_checkpoint(tmp_path / "a", saved)
    save_checkpoint(tmp_path / "b", saved)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_flipped_bit_in_any_file_is_refused(tmp_path):
    saved = checkpoint_of(*trained())
    save_checkpoint(tmp_path / "last", saved)
    files = sorted((tmp_path / "last").iterdir())
    assert len(files) == 9
    for path in files:
        content = path.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            with pytest.raises(DataFormatError):
                load_checkpoint(tmp_path / "last")
        path.write_bytes(content)
    load_checkpoint(tmp_path / "last")


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "position.json", "manifest.json"])
def test_a_pickle_in_place_of_a_file_is_refused_and_not_run(tmp_path, name):
    save_checkpoint(tmp_path / "last", checkpoint_of(*trained()))
    (tmp_path / "last" / name).write_bytes(pickle.dumps(Payload(tmp_path / "marker")))
    with pytest.raises(DataFormatError):
        load_checkpoint(tmp_path / "last")
    assert not (tmp_path / "marker").exists()


def test_a_model_folder_is_no_checkpoint_but_a_checkpoint_holds_a_model(tmp_path):
    model, optimizer = trained()
    save_best(tmp_path / "best", describe_model(model), model.state_dict())
    with pytest.raises(DataFormatError, match="missing average, optimizer, position, random"):
        load_checkpoint(tmp_path / "best")
    save_checkpoint(tmp_path / "last", checkpoint_of(model, optimizer))
    for place in ("best", "last"):
        found = from_pretrained(tmp_path / place).state_dict()
        assert all(torch.equal(found[key], value) for key, value in model.state_dict().items())


def test_best_weights_are_never_nan(tmp_path):
    model, _ = trained()
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    save_best(tmp_path / "best", describe_model(model), weights)
    next(value for value in weights.values() if value.is_floating_point()).fill_(torch.nan)
    with pytest.raises(RunError, match="would not be finite"):
        save_best(tmp_path / "best", describe_model(model), weights)
    assert from_pretrained(tmp_path / "best").name == "amfno"


def test_nothing_in_a_checkpoint_tells_the_time(tmp_path):
    save_checkpoint(tmp_path / "last", checkpoint_of(*trained()))
    for path in (tmp_path / "last").glob("*.json"):
        assert not {"time", "date", "host", "seconds"} & set(json.dumps(json.loads(path.read_text())).split('"'))


def at_step(step: int, **changes) -> Checkpoint:
    model, optimizer = trained(1)
    return replace(checkpoint_of(model, optimizer), position={"step": step}, **changes)


def test_the_newest_sound_checkpoint_is_loaded_and_a_damaged_one_is_told_of(tmp_path):
    for step in range(4):
        save_checkpoint(tmp_path / "last", at_step(step))
    found, notice = load_newest(tmp_path / "last")
    assert (found.position["step"], notice) == (3, None)
    weights = tmp_path / "last" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    found, notice = load_newest(tmp_path / "last")
    assert found.position["step"] == 2
    assert notice is not None
    assert "was changed or damaged" in notice
    assert "going on from the checkpoint before it" in notice
    (tmp_path / ".last.previous" / "position.json").unlink()
    with pytest.raises(DataFormatError, match=r"last/weights.safetensors' was changed"):
        load_newest(tmp_path / "last")
    for path in versions(tmp_path / "last"):
        shutil.rmtree(path)
    with pytest.raises(DataFormatError, match="no checkpoint at"):
        load_newest(tmp_path / "last")


def test_parts_of_another_run_are_refused(tmp_path):
    model, _ = trained(1)
    save_checkpoint(tmp_path / "last", at_step(1, run_id="a" * 64, log_lines=7))
    save_best(tmp_path / "best", describe_model(model), model.state_dict(), run_id="a" * 64)
    found = load_checkpoint(tmp_path / "last")
    assert (found.run_id, found.log_lines) == ("a" * 64, 7)
    require_same_run(tmp_path / "last", found.run_id, "a" * 64)
    with pytest.raises(RunError, match="is of another run"):
        require_same_run(tmp_path / "last", found.run_id, "b" * 64)
    weights = load_best(tmp_path / "best", "a" * 64)
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())
    with pytest.raises(RunError, match="is of another run"):
        load_best(tmp_path / "best", "b" * 64)
    save_best(tmp_path / "best", describe_model(model), model.state_dict())
    with pytest.raises(RunError, match="is of no known run"):
        load_best(tmp_path / "best", "a" * 64)
    assert from_pretrained(tmp_path / "last").name == "amfno"


def test_a_failed_write_names_the_folder_and_the_remedy(tmp_path):
    (tmp_path / "checkpoints").touch()
    with pytest.raises(
        RunError, match=r"cannot write the checkpoint: cannot write '.*last': .* previous one is intact"
    ):
        save_checkpoint(tmp_path / "checkpoints" / "last", at_step(0))
