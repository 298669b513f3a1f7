"""The pointwise network in pieces against the same in plain operations: values, gradients, second derivatives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spectrakan.nn import feed_forward as module
from spectrakan.nn.feed_forward import Network, feed_forward, plain_feed_forward
from spectrakan.nn.products import product


def arguments(space: tuple[int, ...], *, scaled: bool, start: bool, activation: str) -> list[object]:
    """Random arguments in float64; one shift a sample where there is a scale."""
    torch.manual_seed(len(space))
    samples = 3 if scaled else 1

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, requires_grad=True)

    return [
        numbers(4, 3, *space),
        numbers(5, 4),
        numbers(5, samples),
        numbers(5, samples) if scaled else None,
        activation,
        numbers(2, 5),
        numbers(2),
        numbers(2, 3, *space) if start else None,
    ]


@pytest.mark.parametrize("activation", ["gelu", "silu", "relu"])
@pytest.mark.parametrize(("space", "piece"), [((30,), 64), ((6, 7), 16), ((3, 4, 2), 24)])
@pytest.mark.parametrize(("scaled", "start"), [(False, False), (True, True)])
def test_pieces_have_the_values_and_gradients_of_the_whole(
    activation: str,
    space: tuple[int, ...],
    piece: int,
    scaled: bool,
    start: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PIECE", piece)
    given = arguments(space, scaled=scaled, start=start, activation=activation)
    wanted = [each for each in given if isinstance(each, Tensor)]
    out, plain = feed_forward(given[0], Network(*given[1:-1]), given[-1]), plain_feed_forward(given[-1], *given[:-1])
    torch.testing.assert_close(out, plain, rtol=1e-13, atol=1e-13)
    slope = torch.randn_like(out)
    for found, expected in zip(
        torch.autograd.grad(out, wanted, slope), torch.autograd.grad(plain, wanted, slope), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_second_derivatives_are_those_of_the_plain_form() -> None:
    given = arguments((6,), scaled=True, start=True, activation="gelu")
    wanted = [each for each in given if isinstance(each, Tensor)]

    def curvature(function: object) -> tuple[Tensor, ...]:
        out = function(*given).square().sum()  # type: ignore[operator]
        slopes = torch.autograd.grad(out, wanted, create_graph=True)
        return torch.autograd.grad(sum(slope.square().sum() for slope in slopes), wanted)

    plain = curvature(lambda *given: plain_feed_forward(given[-1], *given[:-1]))
    ours = curvature(lambda *given: feed_forward(given[0], Network(*given[1:-1]), given[-1]))
    for found, expected in zip(ours, plain, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_the_fast_product_is_the_product(transposed: tuple[bool, bool]) -> None:
    torch.manual_seed(0)
    first, second = torch.randn(96, 128), torch.randn(128, 200)
    first = first.T.contiguous().T if transposed[0] else first
    second = second.T.contiguous().T if transposed[1] else second
    with torch.no_grad():
        found = product(first, second)
    expected = (first.double() @ second.double()).float()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
