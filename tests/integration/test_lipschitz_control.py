"""Whole runs under Lipschitz control: the kept weights obey the cap, and nothing else about runs changes."""

from __future__ import annotations

import copy
import signal

import pytest
import torch

from spectrakan.errors import ConfigError
from spectrakan.models import from_pretrained
from spectrakan.nn.kan import KAN
from spectrakan.runs import read_log
from spectrakan.theory.control import cap_slopes, certified_bound
from spectrakan.theory.kan_bounds import lemma_bounds, product_bound
from spectrakan.theory.parts import token_kan
from spectrakan.training import StepTaken, resume, train
from spectrakan.training.resolve import resolve
from spectrakan.training.session import Stopped, WeightAverage

TINY = [
    "model.width=4",
    "model.num_layers=1",
    "model.num_modes=3",
    "model.token_width=4",
    "model.attention_width=4",
    "model.pool=center+mean+std",
    "data.num_samples=10",
    "data.resolution=8",
    "training.batch_size=3",
    "training.epochs=4",
    "training.learning_rate=0.05",
    "runtime.checkpoint_steps=2",
    "runtime.log_steps=1",
]
CAP = 1.5


def same_weights(one, other):
    left, right = one.state_dict(), other.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


@pytest.mark.parametrize("measure", ["hull", "lemma"])
@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_kept_weights_obey_the_cap_with_and_without_an_average(tmp_path, measure, average):
    control = [
        f"training.lipschitz.cap={CAP}",
        f"training.lipschitz.measure={measure}",
        f"model.ema_decay={average}",
    ]
    free = train("darcy2d", overrides=[*TINY, f"model.ema_decay={average}"])
    run = train("darcy2d", overrides=[*TINY, *control], output=tmp_path / "run")
    assert certified_bound(token_kan(free.model), measure) > 2 * CAP  # the cap has something to do
    kept = token_kan(from_pretrained(tmp_path / "run" / "checkpoints" / "best"))
    assert same_weights(run.model, from_pretrained(tmp_path / "run" / "checkpoints" / "best"))
    for kan in (kept, copy.deepcopy(kept).double()):
        with torch.no_grad():
            assert product_bound(kan, measure) <= CAP
            # The lemma's bound of each layer, where that is what was capped.
            if measure == "lemma":
                norms = [torch.linalg.matrix_norm(lemma_bounds(layer), 2) for layer in kan.layers]
                assert norms[0] * norms[1] <= CAP
    pairs = 3 * torch.randn(2, 2000, kept.layers[0].in_features, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        change = (kept(pairs[0]) - kept(pairs[1])).norm(dim=1) / (pairs[0] - pairs[1]).norm(dim=1)
    assert change.max() <= CAP
    assert run.record["config"]["training"]["lipschitz"]["cap"] == CAP


def test_a_mean_of_capped_weights_is_brought_back_under_the_cap_and_the_weights_are_left():
    """The bound is not convex: between much weight on small splines and little on large ones it is larger."""
    kan = KAN([2, 3])
    layer = kan.layers[0]
    average = WeightAverage(kan, 0.9, lambda: cap_slopes(kan, CAP))

    def put(weight, coefficient):
        with torch.no_grad():
            layer.base_weight.zero_()
            layer.spline_weight.fill_(weight)
            layer.coefficients.copy_(coefficient * torch.linspace(-1, 1, 8).expand(3, 2, 8))
        cap_slopes(kan, CAP)

    for step in range(1, 40):
        put(*[(100.0, 0.01), (0.01, 100.0)][step % 2])
        average.update(step)
    before = copy.deepcopy(kan.state_dict())
    plain = copy.deepcopy(kan)
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            parameter.copy_(average.weights[name])
    assert certified_bound(plain) > 10 * CAP
    with average.applied():
        assert 0.99 * CAP < certified_bound(kan) <= CAP
    assert all(torch.equal(before[name], tensor) for name, tensor in kan.state_dict().items())


@pytest.mark.parametrize("cut", [1, 4, 7])
def test_a_controlled_run_goes_on_to_the_same_bits(tmp_path, cut):
    control = ["cap=1.5", "penalty=0.01"]
    choices = [*TINY, "model.ema_decay=0.9", *(f"training.lipschitz.{choice}" for choice in control)]
    whole = train("darcy2d", overrides=choices, output=tmp_path / "whole")

    def interrupt(event):
        if isinstance(event, StepTaken) and event.step == cut:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped):
        train("darcy2d", overrides=choices, output=tmp_path / "cut", listeners=[interrupt])
    gone_on = resume(tmp_path / "cut")
    assert same_weights(whole.model, gone_on.model)
    losses = [
        [line["loss"] for line in read_log(tmp_path / name / "log.jsonl") if "loss" in line]
        for name in ("whole", "cut")
    ]
    assert losses[0] == losses[1]


def test_a_penalty_lowers_the_bound_of_a_trained_model():
    free = train("darcy2d", overrides=TINY)
    ruled = train("darcy2d", overrides=[*TINY, "training.lipschitz.penalty=0.3"])
    assert certified_bound(token_kan(ruled.model)) < 0.8 * certified_bound(token_kan(free.model))


@pytest.mark.parametrize(
    "other", [["model.name=fno"], ["model.token=mlp"], ["model.name=deepokan"], ["model.token=none"]]
)
def test_control_needs_a_kan_token(other):
    with pytest.raises(ConfigError, match=r"training.lipschitz controls a KAN token"):
        resolve("darcy2d", [*other, "training.lipschitz.cap=2.0"])
    with pytest.raises(ConfigError, match=r"training.lipschitz.cap"):
        resolve("darcy2d", ["training.lipschitz.cap=0.0"])
