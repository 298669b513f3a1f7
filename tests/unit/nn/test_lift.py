"""The lift: any linear map, with less weight on old frames at first."""

import torch

import spectrakan as sk
from spectrakan.nn.lift import Lift, trust_by_age


def test_old_frames_begin_with_less_weight():
    torch.manual_seed(0)
    lift = Lift(trust_by_age(history=4, fields=2, others=2, decay=0.5), 64)
    sizes = lift.weight.detach().abs().mean(0)
    oldest, last, coordinates = sizes[:2].mean(), sizes[6:8].mean(), sizes[8:].mean()
    torch.testing.assert_close(oldest / last, torch.tensor(1 / 8), rtol=0.3, atol=0)
    torch.testing.assert_close(coordinates / last, torch.tensor(1.0), rtol=0.3, atol=0)


def test_any_map_of_the_channels_can_still_be_had():
    lift, wanted = Lift(trust_by_age(4, 1, 2, 0.1), 8), torch.randn(8, 6)
    with torch.no_grad():
        lift.free.copy_(wanted / lift.trust)
    torch.testing.assert_close(lift.weight, wanted)


def test_without_decay_a_model_is_the_same_as_ever():
    facts = sk.OperatorSignature(space_dims=1, history=3, in_channels=2, out_channels=2, boundary=("periodic",))
    model = sk.build_model("spectrakan", facts, memory_decay=1.0, block="skip")
    assert torch.equal(model.trunk.fine.lift.weight, model.trunk.fine.lift.free)


def test_what_is_learnt_leans_on_the_last_frames():
    """The same gradient moves a prediction less through an old frame: q squared for each frame of age."""
    lift = Lift(trust_by_age(history=3, fields=1, others=0, decay=0.5), 1)
    before = lift.weight.detach().clone()
    lift.weight.sum().backward()
    with torch.no_grad():
        lift.free -= lift.free.grad
    moved = (before - lift.weight).detach().flatten()
    torch.testing.assert_close(moved, torch.tensor([1 / 16, 1 / 4, 1.0]))
