"""The stages around a network: the same for every model, fitted to data, silent where they are off."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import SMALL

import spectrakan as sk
from spectrakan.errors import ConfigError, DataFormatError, ShapeError, UnfittedWarning
from spectrakan.models.catalog import MODELS, complete_settings
from spectrakan.models.operator import _check_numbers
from spectrakan.models.stages import LEAST_DECAY, Stages

TRIVIAL = ("persistence", "climatology", "ridge")
NETWORKS = [name for name in MODELS if name not in TRIVIAL]
EVOLVING = sk.OperatorSignature(space_dims=1, history=3, in_channels=2, out_channels=2)


def small(name: str, signature: sk.OperatorSignature, **settings) -> sk.Operator:
    torch.manual_seed(0)
    return sk.build_model(name, signature, **SMALL.get(name, {}), **settings)


def steady(name: str = "spectrakan", **settings) -> sk.Operator:
    signature = sk.OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True)
    return small(name, signature, **settings)


def samples(cells: tuple[int, int] = (8, 6)) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and targets of a mean field that differs from cell to cell with small departures from it."""
    generator = torch.Generator().manual_seed(1)
    mean = 5 + torch.arange(48.0).view(8, 6)[: cells[0], : cells[1], None]
    departures = 0.01 * torch.randn(20, 1, *cells, 1, generator=generator)
    departures -= departures.mean(0)
    return torch.randn(20, 1, *cells, 1, generator=generator), mean + departures


def silenced(model: sk.Operator) -> sk.Operator:
    """The model with a network that gives zero."""
    model._forward = lambda history, params, axes: history.new_zeros(
        len(history), *history.shape[2:-1], model.network_out_channels
    )
    return model


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_gives_zero_predicts_the_mean_field_or_the_last_frame(name):
    model = silenced(steady(name))
    inputs, targets = samples()
    model.fit_statistics(inputs, targets)
    torch.testing.assert_close(model(inputs[:1]), targets.mean(0), atol=1e-4, rtol=0)
    evolving = silenced(small(name, EVOLVING, range_margin=None))
    frames = torch.randn(6, 4, 16, 2)
    evolving.fit_statistics(frames[:, :3], frames[:, 3:])
    torch.testing.assert_close(evolving(frames[:, :3]), frames[:, 2])


@pytest.mark.parametrize("name", NETWORKS)
def test_every_model_takes_every_stage(name):
    """Filtered, with a product readout and a decayed history; gradients reach the gain."""
    model = small(name, EVOLVING, multiplicative_readout=True, history_decay=0.5, noise_level=0.1, ema_decay=0.9)
    frames = torch.randn(8, 5, 16, 2).cumsum(1)
    model.fit_statistics(frames[:, :3], frames[:, 3:])
    model(frames[:, :3]).square().mean().backward()
    assert float(model.product_gain.grad.abs().min()) > 0
    assert model.stages.ema_decay == 0.9
    torch.testing.assert_close(model.frame_weights, torch.tensor([0.25, 0.5, 1.0]))


def test_residuals_are_in_units_of_the_usual_departure():
    model = steady(width=8)
    inputs, targets = samples()
    model.fit_statistics(inputs, targets)
    scale = float(model.residual_scale * model.output_units.scale)
    assert scale == pytest.approx(0.01, rel=0.1)


def test_a_product_is_silent_at_first_bounded_and_multiplies_each_field_by_its_own(generator):
    model = small("fno", EVOLVING, multiplicative_readout=True, noise_level=0.0)
    field = torch.randn(2, 3, 16, 2, generator=generator)
    with torch.no_grad():
        before = model(field)
        model.readout.out.weight[2:] = 0
        model.readout.out.bias[2:] = torch.tensor([0.5, -20.0])
        assert torch.equal(model(field), before)
        model.product_gain.copy_(torch.tensor([2.0, 3.0]))
        moved = model(field) - before
    factors = torch.tensor([2 * np.tanh(0.5), -3.0], dtype=torch.float32)
    torch.testing.assert_close(moved, factors * field[:, -1], atol=1e-5, rtol=0)
    with pytest.raises(ConfigError, match="needs fields that evolve"):
        steady(multiplicative_readout=True)


@pytest.mark.parametrize("name", ["spectrakan", "unet", "persistence"])
def test_predictions_are_cut_off_beyond_the_range_of_the_training_data(name, generator, tmp_path):
    """Each field at its own ends, widened by the margin; inside nothing changes, and rollouts cannot explode."""
    frames = torch.rand(6, 5, 16, 2, generator=generator) * torch.tensor([1.0, 20.0]) + torch.tensor([3.0, -50.0])
    low, high = (getattr(frames[:, 3:].flatten(0, -2), end)(0) for end in ("amin", "amax"))
    unfiltered = {} if name == "persistence" else {"noise_level": 0.0}
    free, held = (small(name, EVOLVING, range_margin=margin, **unfiltered) for margin in (None, 0.25))
    for model in (free, held):
        model.fit_statistics(frames[:, :3], frames[:, 3:])
    ends = low - 0.25 * (high - low), high + 0.25 * (high - low)
    start = frames[:, :3] + torch.tensor([0.0, 100.0])
    with torch.no_grad():
        expected = free(start).clamp(*ends)
        assert float((free(start) - expected).abs().max()) > 1, "something is cut off"
        torch.testing.assert_close(held(start), expected, rtol=1e-5, atol=1e-4)
        torch.testing.assert_close(held(frames[:, :3]), free(frames[:, :3]).clamp(*ends), rtol=1e-5, atol=1e-4)
    held.save_pretrained(tmp_path / "held")
    torch.testing.assert_close(sk.from_pretrained(tmp_path / "held").limits, held.limits)


def test_limits_are_the_default_where_fields_evolve():
    assert small("fno", EVOLVING)._margin == 0.1
    assert steady("fno").limits is None
    assert small("fno", EVOLVING, range_margin=None).limits is None


def test_a_network_that_grows_without_limit_stays_in_range_for_any_time(generator):
    model = silenced(small("fno", EVOLVING, range_margin=0.1, noise_level=0.0))
    frames = torch.rand(6, 5, 16, 2, generator=generator)
    model.fit_statistics(frames[:, :3], frames[:, 3:])
    model._forward = lambda history, params, axes: 1e3 * history[:, -1]
    found = sk.rollout(model, frames[:, :3], horizon=200)
    assert -0.11 < float(found.min()) < 0 < 1 < float(found.max()) < 1.11


@pytest.mark.parametrize(("turns", "expected"), [(1.0, 1.0), (-1.0, LEAST_DECAY)])
def test_an_automatic_decay_is_the_correlation_of_increments(turns, expected):
    """A field that continues as before, and one that turns back at every frame."""
    signature = sk.OperatorSignature(space_dims=1, history=3, in_channels=1, out_channels=1)
    model = small("fno", signature, history_decay="auto")
    start, step = torch.randn(2, 5, 1, 16, 1)
    frames = torch.cat([start + step * sum(turns**n for n in range(frame)) for frame in range(4)], dim=1)
    model.fit_statistics(frames[:, :3], frames[:, 3:])
    torch.testing.assert_close(model.frame_weights, torch.tensor([expected**2, expected, 1.0]), atol=1e-4, rtol=0)


def test_a_decayed_history_is_what_the_network_receives():
    plain, decayed = (
        small("fno", EVOLVING, noise_level=0.0),
        small("fno", EVOLVING, noise_level=0.0, history_decay=0.5),
    )
    history = torch.randn(2, 3, 16, 2)
    weighted = history * torch.tensor([0.25, 0.5, 1.0]).view(-1, 1, 1)
    assert torch.equal(decayed(history), plain(weighted))


def test_units_are_mean_and_deviation_of_all_frames_where_fields_evolve(generator):
    model = small("fno", EVOLVING)
    frames = 3 * torch.randn(40, 5, 16, 2, generator=generator) + torch.tensor([100.0, -2.0])
    frames[..., 1] = -2.0
    model.fit_statistics(frames[:, :3], frames[:, 3:])
    exact = frames.double().flatten(0, -2)
    torch.testing.assert_close(model.input_units.mean.double(), exact.mean(0), atol=1e-6, rtol=1e-6)
    assert float(model.input_units.scale[0]) == pytest.approx(float(exact[:, 0].std(correction=0)), rel=1e-6)
    assert float(model.input_units.scale[1]) == 1.0, "a constant field"
    assert model.output_units is model.input_units


def test_many_windows_give_the_statistics_of_one(generator):
    inputs, targets = samples()
    whole, parts = steady(width=8), steady(width=8)
    whole.fit_statistics(inputs, targets[:, 0])
    parts.fit_windows(sk.Window(inputs[i : i + 3], targets[i : i + 3]) for i in range(0, 20, 3))
    for key, value in whole.state_dict().items():
        torch.testing.assert_close(parts.state_dict()[key], value, atol=2e-5, rtol=2e-5, msg=key)


@settings(max_examples=12, deadline=None)
@given(power=st.integers(-30, 30), name=st.sampled_from(["spectrakan", "fno", "ridge", "climatology", "deepokan"]))
def test_units_from_1e_minus_30_to_1e30_change_nothing_but_the_units(power, name):
    generator = torch.Generator().manual_seed(0)
    frames = torch.randn(10, 4, 12, 2, generator=generator, dtype=torch.float64)
    scale, predictions = 10.0**power, []
    for factor in (1.0, scale):
        model = small(name, EVOLVING).double()
        model.fit_statistics(factor * frames[:, :3], factor * frames[:, 3:])
        model.calibrate(factor * frames[:, :3], factor * frames[:, 3:])
        with torch.no_grad():
            predictions.append(model(factor * frames[:, :3]) / factor)
    torch.testing.assert_close(predictions[1], predictions[0], atol=1e-7, rtol=1e-7)


def test_a_model_without_statistics_warns_once():
    model = small("fno", EVOLVING)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            model(torch.randn(1, 3, 16, 2))
    assert [each.category for each in caught] == [UnfittedWarning]
    assert "fit_statistics" in str(caught[0].message)


def test_a_fitted_or_loaded_model_does_not_warn(tmp_path):
    model, other = small("fno", EVOLVING), small("fno", EVOLVING)
    frames = torch.randn(4, 4, 16, 2)
    model.fit_statistics(frames[:, :3], frames[:, 3])
    model.save_pretrained(tmp_path / "model")
    other.load_state_dict(model.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnfittedWarning)
        for each in (model, other, sk.from_pretrained(tmp_path / "model"), small("persistence", EVOLVING)):
            each(frames[:, :3])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(2, 3, 16, 2, dtype=torch.int64), r"real numbers, got torch.int64; convert it with \.to"),
        (torch.zeros(2, 3, 16, 2, dtype=torch.complex64), "real numbers, got torch.complex64"),
        (torch.zeros(2, 3, 16, 2, dtype=torch.float64), r"torch.float32, the type of the model, got torch.float64"),
        (torch.zeros(0, 3, 16, 2), "at least one sample"),
    ],
    ids=["integer", "complex", "float64", "empty"],
)
def test_inputs_that_are_no_real_tensors_are_refused_with_a_remedy(value, message):
    model = small("fno", EVOLVING)
    with pytest.raises(ShapeError, match=message):
        model(value)
    with pytest.raises(ShapeError, match=r"torch tensor, got ndarray; use torch\.from_numpy"):
        _check_numbers("an input", np.zeros((2, 3, 16, 2)), model.residual_scale)
    with pytest.raises(ShapeError, match=r"expected targets of shape \(2, steps, 16, 2\)"):
        model.fit_statistics(torch.zeros(2, 3, 16, 2), torch.zeros(2, 1, 8, 2))


def test_a_folder_gives_the_mean_field_back_and_refuses_one_of_another_shape(tmp_path):
    model = steady(width=8)
    model.fit_statistics(*samples())
    model.save_pretrained(tmp_path / "model")
    back = sk.from_pretrained(tmp_path / "model")
    x = torch.randn(2, 1, 16, 12, 1)
    assert torch.equal(back(x), model(x))
    model.mean_field.register_buffer("edges_0", torch.linspace(0, 1, 4))
    model.save_pretrained(tmp_path / "torn")
    with pytest.raises(DataFormatError, match="edges_0 must have shape"):
        sk.from_pretrained(tmp_path / "torn")


def test_a_steady_model_can_be_exported_after_it_was_loaded(tmp_path):
    model = steady(width=8)
    model.fit_statistics(*samples())
    model.save_pretrained(tmp_path / "model")
    back = sk.from_pretrained(tmp_path / "model").eval()
    x = torch.randn(2, 1, 8, 6, 1)
    with torch.no_grad():
        program = torch.export.export(back, (x,)).module()
        torch.testing.assert_close(program(x), back(x), atol=1e-5, rtol=1e-5)


def test_states_bring_their_own_size():
    model, other = steady(width=8), steady(width=8)
    model.fit_statistics(*samples())
    other.load_state_dict(model.state_dict())
    assert other.mean_field.values.shape[:-1] == (8, 6)


def test_complete_settings_are_flat_and_the_same_wherever_they_are_used():
    settings = complete_settings("fno", "default", {"width": 10, "predict": "direct"})
    assert settings["width"] == 10
    assert settings["predict"] == "direct"
    assert settings["noise_level"] == Stages().noise_level
    assert complete_settings("fno", "default", settings) == settings
    assert sk.build_model("fno", EVOLVING, **settings).stages.predict == "direct"
    assert complete_settings("spectrakan", "paper", {})["block"] == "plain"
