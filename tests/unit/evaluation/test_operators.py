"""Plain modules are evaluated like operators, and data of other names are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from known_operators import Scaled, evolving, held
from torch import nn

import spectrakan as sk
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.evaluation import stability
from spectrakan.evaluation.operators import require_fit
from spectrakan.fields import FieldSpec


class Plain(nn.Module):
    """The mean of the last `history` frames times a weight, in physical units."""

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, x, params=None, grid=None):
        return self.weight * x.mean(1)


def test_a_plain_module_has_the_scores_of_the_operator_it_equals():
    data = held(samples=3, frames=6)
    expected = sk.evaluate(Scaled(evolving(), factor=1.1), data)
    found = sk.evaluate(Plain(1.1), data)
    assert found["model"] == "Plain"
    assert found["metrics"] == pytest.approx(expected["metrics"], rel=1e-5, nan_ok=True)
    assert (found["horizon"], found["times"]) == (expected["horizon"], expected["times"])


def test_its_history_is_an_argument_an_attribute_or_one():
    data = held(samples=2, frames=6)
    assert sk.evaluate(Plain(), data)["horizon"] == 5
    assert sk.evaluate(Plain(), data, history=3)["horizon"] == 3
    module = Plain()
    module.history = 2
    assert sk.evaluate(module, data)["horizon"] == 4
    with pytest.raises(ConfigError, match="6 are given to the model: none is left"):
        sk.evaluate(Plain(), data, history=6)
    with pytest.raises(ConfigError, match="reads 1 frames, got history 2"):
        sk.evaluate(Scaled(evolving()), data, history=2)


def test_a_steady_problem_and_every_other_question_take_one_too():
    data = sk.generate("darcy2d", 2, 16, seed=0)
    scores = sk.evaluate(Plain(2.0), data, anomalies_from=[0])
    truth, medium = np.asarray(data.values), np.asarray(data.inputs)
    expected = [np.linalg.norm(2 * m - t) / np.linalg.norm(t) for m, t in zip(medium, truth, strict=True)]
    assert scores["metrics"]["relative_l2"] == pytest.approx(np.mean(expected), rel=1e-5)
    error, departure = ((a - b).reshape(2, -1) for a, b in ((2 * medium, truth), (truth, truth[:1])))
    expected_r2 = 1 - np.square(error).sum() / np.square(departure).sum()
    assert scores["metrics"]["anomaly_r2"] == pytest.approx(expected_r2, rel=1e-5)
    assert sk.evaluate(Plain(), data, 8)["data"] == "solved"
    moving = held(samples=2, frames=5)
    assert stability(Plain(3.0), moving)["blow_ups"] == 2


def test_a_float64_module_is_scored_in_float64():
    data = replace(held(samples=2, frames=3), values=1e6 + 1e-3 * np.asarray(held(samples=2, frames=3).values))
    module = Plain().double()
    with torch.no_grad():
        module.weight.fill_(1.0 + 1e-9)
    # Errors of 1e-3 and 2e-3 in two frames; float32 has steps of 0.06 at 1e6.
    assert sk.evaluate(module, data)["metrics"]["rmse"] == pytest.approx(1e-3 * np.sqrt(2.5), rel=1e-5)


class OneArgument(nn.Module):
    def forward(self, x):
        return x[:, -1]


class WrongShape(Plain):
    def forward(self, x, params=None, grid=None):
        return x


class NoTensor(Plain):
    def forward(self, x, params=None, grid=None):
        return x[:, -1], None


@pytest.mark.parametrize(
    ("module", "error", "message"),
    [
        (OneArgument(), ConfigError, r"OneArgument must be called as module\(x, params=None, grid=None\)"),
        (WrongShape(), ShapeError, r"must map \(2, 1, 16, 1\) .* to \(2, 16, 1\), got \(2, 1, 16, 1\)"),
        (NoTensor(), ShapeError, r"got tuple"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(module, error, message):
    with pytest.raises(error, match=message) as caught:
        sk.evaluate(module, held(samples=2, frames=3))
    assert "\n" not in str(caught.value)


def test_a_plain_module_rolls_out():
    x = torch.arange(4.0).reshape(1, 2, 2, 1)
    frames = sk.rollout(Plain(2.0), x, 2).detach()
    first = x[0, 0] + x[0, 1]
    assert torch.equal(frames[0, 0], first)
    assert torch.equal(frames[0, 1], x[0, 1] + first)
    with pytest.raises(ShapeError, match=r"must map \(1, 2, 2, 1\) to \(1, 2, 1\)"):
        sk.rollout(WrongShape(), x, 2)


def named(*fields: str, params: tuple[str, ...] = ()) -> sk.OperatorSignature:
    return sk.OperatorSignature(
        space_dims=1, history=1, in_channels=len(fields), out_channels=len(fields), in_fields=fields,
        out_fields=fields, num_params=len(params), param_names=params,
    )  # fmt: skip


def test_names_of_fields_and_parameters_must_agree():
    gas = named("density", "velocity", params=("nu",))
    require_fit(gas, gas)
    with pytest.raises(ShapeError, match="fields are density, velocity, the data's are height, velocity"):
        require_fit(gas, named("height", "velocity", params=("nu",)))
    with pytest.raises(ShapeError, match=r"parameters are nu, the data's are eta"):
        require_fit(gas, named("density", "velocity", params=("eta",)))
    with pytest.raises(ShapeError, match=r"reorder the data by values\[..., \[1, 0\]\]"):
        require_fit(gas, named("velocity", "density", params=("nu",)))
    # Names that a loader invents for unnamed files, or that are unknown, are not compared.
    require_fit(gas, named("u0", "u1", params=("nu",)))
    require_fit(replace(gas, in_fields=(), out_fields=(), param_names=()), named("a", "b", params=("c",)))


def test_an_operator_of_other_fields_is_refused_by_name():
    data = replace(held(samples=1, frames=3), fields=(FieldSpec("heat"),))
    own = replace(evolving(), in_fields=("salt",), out_fields=("salt",))
    with pytest.raises(ShapeError, match="salt, the data's are heat"):
        sk.evaluate(Scaled(own), data)
    assert (
        sk.evaluate(Scaled(replace(own, in_fields=("heat",), out_fields=("heat",))), data)["metrics"]["rmse"] == 0.0
    )
