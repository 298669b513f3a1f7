"""Products by oneDNN in single precision against those in double precision; the lift against its plain form."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spectrakan.nn import feed_forward
from spectrakan.nn.axis import axis_transforms, uniform_axis
from spectrakan.nn.multiscale import lifted
from spectrakan.nn.pointwise import ACTIVATIONS, pointwise
from spectrakan.nn.products import FEW, grouped_product, linear, new_cells
from spectrakan.nn.residual import ResidualBlocks, plain_residual
from spectrakan.nn.spectral import AxialSpectral


@pytest.mark.parametrize("activation", ["", "gelu", "silu", "relu"])
@pytest.mark.parametrize("biased", [False, True])
def test_linear_maps_of_rows(biased: bool, activation: str) -> None:
    torch.manual_seed(0)
    rows, weight, bias = torch.randn(70, 5), torch.randn(6, 5), torch.randn(6) if biased else None
    with torch.no_grad():
        found = linear(rows, weight, bias, activation)
        exact = rows.double() @ weight.double().T + (0 if bias is None else bias.double())
        exact = ACTIVATIONS[activation].plain(exact) if activation else exact
    torch.testing.assert_close(found, exact.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize("lines", [FEW // 8, FEW])
def test_grouped_products_mix_each_mode_by_its_own_matrix(lines: int, by_line: bool) -> None:
    torch.manual_seed(0)
    rows, matrices = torch.randn(5, lines, 6), torch.randn(5, 6, 8)
    rows = rows.transpose(0, 1).contiguous().transpose(0, 1) if by_line else rows
    with torch.no_grad():
        found = grouped_product(rows, matrices)
    exact = rows.double() @ matrices.double()
    torch.testing.assert_close(found, exact.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("space", [(32,), (16, 20)], ids=str)
def test_blocks_in_single_precision_have_the_values_and_gradients_of_double(
    space: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_forward, "PIECE", 100)
    torch.manual_seed(0)
    layer = AxialSpectral(6, 4, ("fourier", "extended")[: len(space)])
    axes = [uniform_axis(cells, True) for cells in space]

    def outcome(dtype: torch.dtype) -> list[Tensor]:
        torch.manual_seed(1)
        numbers = lambda *shape: torch.randn(shape).to(dtype).requires_grad_()  # noqa: E731
        field, parts = numbers(6, 3, *space), layer.to(dtype).parts
        factors = [numbers(4, 2, 6, 3) for _ in space]
        network = [numbers(8, 6), numbers(8, 3), numbers(8, 3), "gelu", numbers(6, 8), numbers(6)]
        given = [
            *network,
            *(each for part in parts(axis_transforms(axes, layer.bases, 4, field), factors) for each in part),
        ]
        blocks = plain_residual if dtype == torch.float64 else ResidualBlocks.apply
        out = blocks(2, field, *given, *given)
        wanted = [each for each in (field, *given) if isinstance(each, Tensor) and each.requires_grad]
        return [out.detach(), *torch.autograd.grad(out.square().mean(), wanted)]

    for found, exact in zip(outcome(torch.float32), outcome(torch.float64), strict=True):
        torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-5 * float(exact.abs().max()))


@pytest.mark.parametrize("space", [(7,), (4, 5)], ids=str)
def test_the_lift_is_the_pointwise_map_with_its_gradients(space: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (4,), (3, 2, *space))]
    found, exact = lifted(*given), pointwise(*given)
    torch.testing.assert_close(found, exact)
    assert found.stride() == new_cells(exact, 4)[0].stride()
    slopes = [torch.autograd.grad(out.pow(3).sum(), given, create_graph=True) for out in (found, exact)]
    curvatures = [torch.autograd.grad(sum(each.square().sum() for each in part), given) for part in slopes]
    for ours, plain in zip((*slopes[0], *curvatures[0]), (*slopes[1], *curvatures[1]), strict=True):
        torch.testing.assert_close(ours, plain)
    with torch.no_grad():
        torch.testing.assert_close(lifted(*given), exact)
