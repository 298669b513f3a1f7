"""The lift: the same linear maps, learnt in principal components."""

import pytest
import torch

from spectrakan.nn.lift import Lift


def _frames(num_frames: int, cells: int = 4000) -> torch.Tensor:
    """Channels that differ little: a common field and a small motion, `(frames, cells)`."""
    generator = torch.Generator().manual_seed(0)
    field, motion = torch.randn(2, cells, generator=generator)
    return torch.stack([field + 0.05 * step * motion for step in range(num_frames)])


def test_before_fitting_it_is_a_plain_linear_map() -> None:
    lift = Lift(3, 2, 8)
    assert torch.equal(lift.weight, lift.free)


def test_components_above_the_floor_have_unit_spread() -> None:
    frames = _frames(2)
    lift = Lift(2, 1, 8)
    lift.fit(torch.cov(frames), floor=1e-3)
    components = lift.units @ (frames - frames.mean(1, keepdim=True))
    torch.testing.assert_close(torch.cov(components), torch.eye(2), atol=2e-3, rtol=0)


def test_components_below_the_floor_are_amplified_by_its_inverse_only() -> None:
    lift = Lift(4, 1, 8)
    lift.fit(torch.cov(_frames(4)), floor=0.01)
    assert torch.linalg.matrix_norm(lift.units, 2).item() == pytest.approx(100, rel=1e-4)


def test_any_map_of_the_channels_can_still_be_had() -> None:
    lift, wanted = Lift(4, 2, 8), torch.randn(8, 6)
    lift.fit(torch.cov(_frames(4)), floor=0.01)
    with torch.no_grad():
        lift.free[:, :4] = wanted[:, :4] @ torch.linalg.inv(lift.units)
        lift.free[:, 4:] = wanted[:, 4:]
    torch.testing.assert_close(lift.weight, wanted, atol=1e-3, rtol=1e-3)


def test_the_motion_is_learnt_sooner_than_from_frames() -> None:
    """Gradient descent on the motion between two frames, which is a hundredth of their size."""
    frames = _frames(2)
    target = (frames[1] - frames[0]) / 0.05

    def loss_after(lift: Lift) -> float:
        optimizer = torch.optim.SGD([lift.free], lr=0.1)
        for _ in range(50):
            loss = (lift.weight[:, :2] @ frames - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    by_frames, by_components = Lift(2, 0, 1), Lift(2, 0, 1)
    by_components.fit(torch.cov(frames), floor=1e-3)
    assert loss_after(by_components) < 1e-3 * loss_after(by_frames)
