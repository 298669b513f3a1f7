"""Whole runs on tiny data: repeatable, resumable to the bit, recovering, and of equal result by other ways."""

from __future__ import annotations

import dataclasses
import json
import signal
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from spectrakan.checkpoint import load_checkpoint
from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError, RunError, ShapeError
from spectrakan.evaluation import evaluate
from spectrakan.models import from_pretrained
from spectrakan.models.spectrakan import AMFNO
from spectrakan.runs import RECORD_KEYS, read_log, read_record
from spectrakan.training import EpochEnded, Recovered, StepTaken, resume, train
from spectrakan.training.session import Stopped

TINY = [
    "model.name=amfno",
    "model.width=4",
    "model.num_layers=1",
    "model.num_modes=3",
    "data.num_samples=10",
    "data.resolution=8",
    "training.batch_size=3",
    "training.epochs=3",
    "runtime.checkpoint_steps=2",
    "runtime.log_steps=1",
]
IN_TIME = ["data.horizon=3", "data.history=1", "training.epochs=1", "data.num_samples=10", "training.batch_size=64"]


def same_weights(one, other):
    left, right = one.state_dict(), other.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def same_bytes(one: Path, other: Path):
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_a_record_alone_is_enough_to_repeat_its_run(tmp_path):
    run = train("darcy2d", overrides=TINY, output=tmp_path / "run")
    record = read_record(tmp_path / "run" / "record.json")
    assert record == run.record
    assert tuple(record) == RECORD_KEYS
    assert record["metrics"]["relative_l2"] > 0
    assert list(record["metrics_per_field"]) == ["pressure"]
    again = train(record["config"])
    assert same_weights(run.model, again.model)
    assert again.record["metrics"] == record["metrics"]
    assert again.record["provenance"]["data_sha256"] == record["provenance"]["data_sha256"]
    other = train(record["config"], overrides=["runtime.seed=1"])
    assert not same_weights(run.model, other.model)


def test_the_caller_s_random_numbers_are_left_alone():
    before = torch.get_rng_state()
    train("darcy2d", overrides=TINY)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("cut", [1, 2, 3, 5, 8])
def test_a_run_cut_after_any_step_goes_on_to_the_same_bits(tmp_path, cut):
    choices = [*TINY, "model.ema_decay=0.9", "training.noise=0.1"]
    whole = train("darcy2d", overrides=choices, output=tmp_path / "whole")

    def interrupt(event):
        if isinstance(event, StepTaken) and event.step == cut:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped) as stop:
        train("darcy2d", overrides=choices, output=tmp_path / "cut", listeners=[interrupt])
    assert stop.value.code == 143
    # The signal came after step `cut`, so one more step was under way before it was heeded.
    assert load_checkpoint(tmp_path / "cut" / "checkpoints" / "last").position["step"] == min(cut + 1, 9)
    gone_on = resume(tmp_path / "cut")
    assert same_weights(whole.model, gone_on.model)
    assert same_bytes(tmp_path / "whole/checkpoints/last", tmp_path / "cut/checkpoints/last")
    assert same_bytes(tmp_path / "whole/checkpoints/best", tmp_path / "cut/checkpoints/best")
    logs = [
        [{key: line[key] for key in line if key != "seconds"} for line in read_log(tmp_path / name / "log.jsonl")]
        for name in ("whole", "cut")
    ]
    assert logs[0] == logs[1]


def test_a_finished_run_is_only_read(tmp_path):
    train("darcy2d", overrides=TINY, output=tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    resume(tmp_path / "run")
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    with pytest.raises(ConfigError, match="already holds a run"):
        train("darcy2d", overrides=TINY, output=tmp_path / "run")


def test_gates_are_finished_with_the_run_and_kept(tmp_path):
    folder = tmp_path / "run"
    run = train("darcy2d", overrides=[*TINY, "model.noise_level=0.1"], output=folder)
    trained_with = load_checkpoint(folder / "checkpoints" / "last").weights["output_filter.gate"]
    assert not torch.equal(run.model.output_filter.gate, trained_with)
    assert same_weights(run.model, from_pretrained(folder / "checkpoints" / "best"))
    (folder / "record.json").unlink()  # as if it had been killed before it could write
    assert same_weights(run.model, resume(folder).model)


def test_other_data_under_a_checkpoint_are_refused(tmp_path):
    def interrupt(event):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped) as stop:
        train("darcy2d", overrides=TINY, output=tmp_path / "run", listeners=[interrupt])
    assert stop.value.code == 130
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("seed: 0", "seed: 5", 1))
    with pytest.raises(RunError, match=r"was changed since the run was started \(data\.seed: 0 -> 5\)"):
        resume(tmp_path / "run")


def test_another_model_under_a_checkpoint_is_refused(tmp_path):
    def interrupt(event):
        signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped):
        train("darcy2d", overrides=TINY, output=tmp_path / "run", listeners=[interrupt])
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("width: 4", "width: 5", 1))
    with pytest.raises(RunError, match=r"was changed since the run was started \(model\.width: 4 -> 5\)"):
        resume(tmp_path / "run")


class Failing(AMFNO):
    """Answers NaN, or far too much, at chosen calls of training."""

    bad: ClassVar[dict[int, float]] = {}
    calls = 0

    def _forward(self, history, params, axes):
        answer = super()._forward(history, params, axes)
        if self.training:
            type(self).calls += 1
            return answer * self.bad.get(self.calls, 1.0)
        return answer


@pytest.fixture
def failing(monkeypatch):
    from spectrakan.models import catalog

    monkeypatch.setitem(catalog.MODELS, "amfno", catalog.MODELS["amfno"]._replace(operator=Failing))
    monkeypatch.setattr(Failing, "calls", 0)
    return lambda bad: monkeypatch.setattr(Failing, "bad", bad)


@pytest.mark.parametrize("factor", [float("nan"), float("inf")])
def test_a_spoilt_step_is_not_taken_and_training_goes_on_at_half_the_rate(failing, factor):
    failing({5: factor})
    told = []
    run = train("darcy2d", overrides=TINY, listeners=[told.append])
    recoveries = [event for event in told if isinstance(event, Recovered)]
    assert [(event.epoch, event.step, event.rate_factor) for event in recoveries] == [(1, 4, 0.5)]
    steps = [event.step for event in told if isinstance(event, StepTaken)]
    assert steps == [1, 2, 3, 4, 4, 5, 6, 7, 8, 9]  # epoch 1 began after step 3 and was begun again
    rates = {event.step: event.rate for event in told if isinstance(event, StepTaken)}
    plain = {event.step: event.rate for event in _events(failing)}
    assert rates[9] == pytest.approx(plain[9] / 2)
    assert all(bool(tensor.isfinite().all()) for tensor in run.model.state_dict().values())


@pytest.mark.parametrize("cut", [3, 4])
def test_a_resumed_run_recovers_as_an_undisturbed_one(failing, tmp_path, monkeypatch, cut):
    """The third step of epoch 1 fails twice; the run is cut after one or two good steps of that epoch."""
    failing({6: float("nan"), 9: float("nan")})
    choices = [*TINY, "model.ema_decay=0.9", "training.noise=0.1"]
    told = []
    train("darcy2d", overrides=choices, output=tmp_path / "whole", listeners=[told.append])
    assert [event.step for event in told if isinstance(event, Recovered)] == [5, 5]
    monkeypatch.setattr(Failing, "calls", 0)

    def interrupt(event):
        if isinstance(event, StepTaken) and event.step == cut:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped):
        train("darcy2d", overrides=choices, output=tmp_path / "cut", listeners=[interrupt])
    assert load_checkpoint(tmp_path / "cut/checkpoints/last").position["best_step"] == 3
    again = []
    resume(tmp_path / "cut", listeners=[again.append])
    assert [event.step for event in again if isinstance(event, Recovered)] == [5, 5]
    assert [event.step for event in again if isinstance(event, StepTaken)][-6:] == [4, 5, 6, 7, 8, 9]
    for name in ("last", "best"):
        assert same_bytes(tmp_path / "whole/checkpoints" / name, tmp_path / "cut/checkpoints" / name)


def _events(failing):
    failing({})
    told = []
    train("darcy2d", overrides=TINY, listeners=[told.append])
    return [event for event in told if isinstance(event, StepTaken)]


def test_an_exploding_loss_is_caught(failing):
    failing({14: 1e6})
    told = []
    train("darcy2d", overrides=[*TINY, "training.epochs=6"], listeners=[told.append])
    recoveries = [event for event in told if isinstance(event, Recovered)]
    assert len(recoveries) == 1
    assert "rose to" in recoveries[0].reason


def test_training_that_cannot_be_saved_ends_with_an_error_and_finite_best_weights(failing, tmp_path):
    failing({call: float("nan") for call in range(5, 100)})
    with pytest.raises(RunError, match=r"diverged at step 3 of epoch 1: the loss is nan.*went back.*3 times"):
        train("darcy2d", overrides=TINY, output=tmp_path / "run")
    best = from_pretrained(tmp_path / "run" / "checkpoints" / "best").state_dict()
    assert all(bool(tensor.isfinite().all()) for tensor in best.values())
    assert not (tmp_path / "run" / "record.json").exists()


@pytest.mark.parametrize(
    "mode",
    [
        ["training.mode=one_step", "training.horizon=1", "training.curriculum=0.0"],
        ["training.mode=autoregressive", "training.horizon=3"],
        ["training.mode=pushforward", "training.horizon=3", "training.noise=0.01"],
    ],
)
def test_every_mode_trains_in_time(mode):
    told = []
    run = train(
        "diffusion_reaction1d", overrides=[*TINY, "data.resolution=16", *IN_TIME, *mode], listeners=[told.append]
    )
    assert run.record["horizon"] == 3
    assert [event.is_best for event in told if isinstance(event, EpochEnded)] == [True]


def test_training_lowers_the_error_below_that_of_the_mean_field():
    told = []
    choices = [*TINY, "data.num_samples=40", "training.epochs=25", "training.learning_rate=0.01", "model.width=8"]
    run = train("darcy2d", overrides=choices, listeners=[told.append])
    errors = [event.validation for event in told if isinstance(event, EpochEnded)]
    assert errors[-1] < 0.6 * errors[0]
    assert run.record["metrics"]["relative_l2"] < 0.3


def test_scores_at_other_resolutions_and_horizons():
    run = train("diffusion_reaction1d", overrides=[*TINY, "data.resolution=16", *IN_TIME])
    data = generate("diffusion_reaction1d", 2, 32)
    coarse = evaluate(run.model, data, resolution=16, horizon=4)
    assert (coarse["resolution"], coarse["horizon"], coarse["num_samples"]) == ([16], 4, 2)
    assert len(coarse["metrics_per_frame"]["rmse"]) == 4
    assert coarse["times"] == pytest.approx(data.times[1:5])
    finer = evaluate(run.model, data, resolution=64, horizon=4)
    assert (finer["resolution"], finer["data"]) == ([64], "solved")
    with pytest.raises(ConfigError, match="coarser grids only"):
        evaluate(run.model, dataclasses.replace(data, origin={}), resolution=64)
    with pytest.raises(ConfigError, match="a horizon of 1 to 100"):
        evaluate(run.model, data, horizon=101)
    with pytest.raises(ShapeError, match="fields on 1 axes"):
        evaluate(run.model, generate("droplet2d", 1, 8, frames=3))


def test_a_run_without_output_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train("darcy2d", overrides=TINY)
    assert list(tmp_path.iterdir()) == []


def test_bad_data_leave_no_folder_behind(tmp_path):
    (tmp_path / "bad.h5").write_bytes(b"not a data file")
    with pytest.raises(Exception, match=r"bad\.h5"):
        train("darcy2d", overrides=[*TINY, f"data.path={tmp_path / 'bad.h5'}"], output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_log_is_json_lines_with_event_epoch_and_step(tmp_path):
    train("darcy2d", overrides=TINY, output=tmp_path / "run")
    lines = [json.loads(text) for text in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [(line["event"], line["epoch"], line["step"]) for line in lines[:4]] == [
        ("step", 0, 1),
        ("step", 0, 2),
        ("step", 0, 3),
        ("epoch", 0, 3),
    ]
    assert len(lines) == 12
