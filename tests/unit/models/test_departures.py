"""Predicting departures from the mean field, and the defaults that follow from what is learnt."""

from __future__ import annotations

import itertools

import pytest
import torch

import spectrakan as sk
from spectrakan.errors import DataFormatError
from spectrakan.models.amfno import LEAST_DECAY
from spectrakan.models.catalog import variant_choices
from spectrakan.training import resolve


def steady(name: str = "spectrakan", **choices) -> sk.Operator:
    facts = sk.OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1, steady=True)
    torch.manual_seed(0)
    return sk.build_model(name, facts, **choices)


def windows(cells: tuple[int, int] = (8, 6)) -> list[sk.Window]:
    """A mean field that differs from cell to cell, and small departures from it."""
    generator = torch.Generator().manual_seed(1)
    mean = 5 + torch.arange(48.0).view(8, 6)[: cells[0], : cells[1], None]
    departures = 0.01 * torch.randn(20, 1, *cells, 1, generator=generator)
    departures -= departures.mean(0)
    return [sk.Window(torch.randn(20, 1, *cells, 1, generator=generator), mean + departures)]


def with_silent_readout(model: sk.Operator) -> sk.Operator:
    with torch.no_grad():
        model.readout.out.weight.zero_()
        model.readout.out.bias.zero_()
    return model


@pytest.mark.parametrize(("name", "choices"), [("spectrakan", {"width": 8}), ("fno", {"predict": "departure"})])
def test_a_network_that_says_nothing_predicts_the_mean_field(name, choices):
    model = with_silent_readout(steady(name, **choices))
    model.output_units.set(mean=torch.tensor([20.0]), scale=torch.tensor([10.0]))
    model.prepare(windows())
    expected = windows()[0].targets.mean(0)
    torch.testing.assert_close(model(torch.randn(1, 1, 8, 6, 1)), expected, atol=1e-4, rtol=0)


def test_answers_are_in_units_of_the_usual_departure():
    model = steady(width=8)
    model.prepare(windows())
    assert model.increment_scale.item() == pytest.approx(0.01, rel=0.1)


def test_a_folder_gives_the_mean_field_back_and_refuses_one_of_another_shape(tmp_path):
    model = steady(width=8)
    model.prepare(windows())
    model.save_pretrained(tmp_path / "model")
    back = sk.from_pretrained(tmp_path / "model")
    x = torch.randn(2, 1, 16, 12, 1)
    assert torch.equal(back(x), model(x))
    model.usual.register_buffer("edges_0", torch.linspace(0, 1, 4))
    model.save_pretrained(tmp_path / "torn")
    with pytest.raises(DataFormatError, match="edges_0 must have shape"):
        sk.from_pretrained(tmp_path / "torn")


def test_a_steady_model_can_be_exported_after_it_was_loaded(tmp_path):
    model = steady(width=8)
    model.prepare(windows())
    model.save_pretrained(tmp_path / "model")
    back = sk.from_pretrained(tmp_path / "model").eval()
    x = torch.randn(2, 1, 8, 6, 1)
    with torch.no_grad():
        program = torch.export.export(back, (x,)).module()
        torch.testing.assert_close(program(x), back(x), atol=1e-5, rtol=1e-5)


def test_states_bring_their_own_size():
    model, other = steady(width=8), steady(width=8)
    model.prepare(windows())
    other.load_state_dict(model.state_dict())
    assert other.usual.cells == (8, 6)


@pytest.mark.parametrize(("turns", "expected"), [(1.0, 1.0), (-1.0, LEAST_DECAY)])
def test_old_frames_are_trusted_as_far_as_they_foretell_the_next(turns, expected):
    """A field that goes on as it went, and one that turns back at every frame."""
    facts = sk.OperatorSignature(space_dims=1, history=3, in_channels=1, out_channels=1)
    model = sk.build_model("spectrakan", facts, width=8, coarse=True)
    start, step = torch.randn(2, 5, 1, 16, 1)
    frames = torch.cat([start + step * sum(turns**n for n in range(frame)) for frame in range(4)], dim=1)
    model.prepare([sk.Window(frames[:, :3], frames[:, 3:])])
    for branch in (model.trunk.fine, model.trunk.coarse):
        wanted = torch.tensor([expected**2, expected, 1.0, 1.0])
        torch.testing.assert_close(branch.lift.trust, wanted, atol=1e-4, rtol=0)


def test_a_chosen_decay_is_left_as_it_is():
    facts = sk.OperatorSignature(space_dims=1, history=2, in_channels=1, out_channels=1)
    model = sk.build_model("amfno", facts, width=8, memory_decay=0.6)
    model.prepare([sk.Window(torch.randn(5, 2, 16, 1), torch.randn(5, 1, 16, 1))])
    torch.testing.assert_close(model.trunk.fine.lift.trust, torch.tensor([0.6, 1.0, 1.0]))


def test_the_default_follows_what_is_learnt_wherever_it_is_built():
    tasks = (("cns1d", 1, True), ("darcy2d", 2, False), ("droplet2d", 2, True))
    for (task, dims, evolves), name in itertools.product(tasks, ("spectrakan", "amfno")):
        wanted = variant_choices(name, "default", space_dims=dims, evolves=evolves)
        assert wanted.items() <= resolve({"task": task, "model": {"name": name}}).model.items()
        facts = sk.OperatorSignature(space_dims=dims, history=1, in_channels=1, out_channels=1, steady=not evolves)
        built = sk.build_model(name, facts)
        assert wanted.items() <= {key: getattr(built.config, key) for key in wanted}.items()
    assert resolve("cns1d", ["model.block=skip"]).model["block"] == "skip"
    assert resolve({"task": "cns1d", "model": {"variant": "paper"}}).model["block"] == "plain"
    assert variant_choices("fno", "default", space_dims=1, evolves=True) == {}
