"""DyMixOp against golden values of its authors' code (`tools/make_golden.py`), with the same weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from experiments.dymixop import DyMixOp, DyMixOpConfig, located
from spectrakan.fields import OperatorSignature
from spectrakan.nn.axis import axes_of
from spectrakan.nn.embedding import channels_first
from tools.make_golden import sequence, weights


def carried(case: str, cells: tuple[int, ...]) -> tuple[DyMixOp, dict[str, torch.Tensor]]:
    """Our model with the weights of a golden case, and its outputs."""
    path = Path(__file__).parent / "golden" / "dymixop.json"
    content = json.loads(path.read_text())["cases"][case]
    theirs, settings, dims = weights(content["weights"]), content["settings"], len(cells)
    signature = OperatorSignature(
        space_dims=dims, history=2, in_channels=1, out_channels=1, boundary=("periodic",) * dims
    )
    config = DyMixOpConfig(
        width=settings["hidden_dim"], num_layers=settings["num_layers"], num_modes=settings["global_modes"],
        reference_cells=cells[0],
    )  # fmt: skip
    ours = DyMixOp(signature, config).double()

    def put(parameter: torch.Tensor, values: torch.Tensor) -> None:
        with torch.no_grad():
            parameter.copy_(values.reshape(parameter.shape))

    pairs = {"lift": ours.lift[0], "reduction": ours.lift[1]}
    pairs |= {
        "inverse_reduction": ours.readout[0],
        "inverse_lifting": ours.readout[1],
        "dyia.evo_weights": ours.gather,
    }
    for number, layer in enumerate(ours.layers):
        place = f"dyia.layers.{number}."
        pairs |= {f"{place}nonlin_layers.0.lt.conv": layer.factor, f"{place}lin_layers.0.conv": layer.local}
        pairs |= {f"{place}A_op.0": layer.widen, f"{place}A_op.1": layer.narrow}
        put(layer.differential.weight, theirs[f"{place}lin_layers.1.diff.weight"])
        name = f"{place}nonlin_layers.0.gt.w"
        blocks = [theirs[name]] if dims == 1 else [theirs[f"{name}1"], theirs[f"{name}2"]]
        put(layer.spread.weight, torch.cat([block.movedim((0, 1), (-3, -2)) for block in blocks]))
    for name, linear in pairs.items():
        put(linear.weight, theirs[f"{name}.weight"])
        put(linear.bias, theirs[f"{name}.bias"])
    put(ours.rate, theirs["dyia.lambda_"])
    outputs = {
        key: torch.tensor(each["values"], dtype=torch.float64).view(each["shape"])
        for key, each in content["outputs"].items()
    }
    return ours, outputs


@pytest.mark.parametrize(("case", "cells"), [("1d", (16,)), ("2d", (12, 12))])
def test_it_is_the_authors_network(case, cells):
    """On periodic axes of `reference_cells`, in 2D on as many along both."""
    ours, outputs = carried(case, cells)
    x = torch.from_numpy(sequence(0, (2, 2, *cells)))[..., None]
    axes = axes_of(cells, None, [True] * len(cells))
    with torch.no_grad():
        dynamics = ours.dynamics(ours.lift(located(channels_first(x), axes)), axes)
        found = ours(x)[..., 0]
    for result, expected in ((dynamics.transpose(0, 1)[:1], outputs["dynamics"]), (found, outputs["output"])):
        assert float(expected.std()) > 0.01
        assert float((result - expected).abs().max() / expected.abs().max()) < 1e-5
