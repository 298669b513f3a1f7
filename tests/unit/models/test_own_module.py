"""Users' own networks: registered or handed over, with every stage, kept in folders."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import spectrakan as sk
from spectrakan.errors import ConfigError, DataFormatError, ShapeError
from spectrakan.models import catalog, wrap_module

SIGNATURE = sk.OperatorSignature(space_dims=1, history=2, in_channels=2, out_channels=2, num_params=1)


class Linear(nn.Module):
    """A linear map of the last frame and the parameter, and a record of what came in."""

    def __init__(self, signature: sk.OperatorSignature, gain: float = 1.0) -> None:
        super().__init__()
        self.map = nn.Linear(signature.in_channels + signature.num_params, signature.out_channels)
        self.gain, self.grids = gain, []

    def forward(self, x, params=None, grid=None):
        self.grids.append(grid)
        given = params[:, None].expand(-1, x.shape[2], -1)
        return self.gain * self.map(torch.cat([x[:, -1], given], dim=-1))


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(catalog, "_REGISTERED", {})
    sk.register_model("linear", Linear)


def data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return (
        5 + torch.randn(12, 2, 16, 2, generator=generator),
        5 + torch.randn(12, 1, 16, 2, generator=generator),
        torch.randn(12, 1, generator=generator),
    )


def test_a_registered_model_is_built_with_its_settings_and_kept(registered, tmp_path):
    model = sk.build_model("linear", SIGNATURE, gain=2.0, predict="direct", noise_level=0.0, range_margin=None)
    inputs, targets, params = data()
    model.fit_statistics(inputs, targets, params)
    units, given = model.input_units, model.param_units.normalize(params)
    expected = units.denormalize(model.module(units.normalize(inputs), given))
    torch.testing.assert_close(model(inputs, params), expected)
    assert (model.name, model.module.gain, model.stages.predict) == ("linear", 2.0, "direct")
    model.save_pretrained(tmp_path / "model")
    assert torch.equal(sk.from_pretrained(tmp_path / "model")(inputs, params), model(inputs, params))
    assert catalog.complete_settings("linear", "default", {"gain": 2.0})["gain"] == 2.0


def test_stages_wrap_it(registered):
    model = sk.build_model("linear", SIGNATURE, multiplicative_readout=True, history_decay=0.5)
    assert model.module.map.out_features == 4, "added and factor of each field"
    inputs, targets, params = data()
    model.fit_statistics(inputs, targets, params)
    model(inputs, params).square().mean().backward()
    assert float(model.product_gain.grad.abs().min()) > 0
    assert model.output_filter is not None


def test_names_are_unique_and_unknown_ones_get_a_hint(registered):
    for taken in ("linear", "fno", "module"):
        with pytest.raises(ConfigError, match="is taken"):
            sk.register_model(taken, Linear)
    with pytest.raises(ConfigError, match="did you mean 'linear'"):
        sk.build_model("linaer", SIGNATURE)


def test_entry_points_are_found_by_name(monkeypatch):
    monkeypatch.setattr(catalog, "_REGISTERED", {})
    loaded = []

    def entry_points(group: str, name: str):
        assert group == "spectrakan.models"
        return [SimpleNamespace(load=lambda: loaded.append(name) or Linear)] if name == "theirs" else []

    monkeypatch.setattr(catalog, "entry_points", entry_points)
    assert isinstance(sk.build_model("theirs", SIGNATURE).module, Linear)
    sk.build_model("theirs", SIGNATURE)
    assert loaded == ["theirs"]


def test_a_module_that_is_handed_over_has_the_name_of_its_class(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "_REGISTERED", {})
    model = wrap_module(Linear(SIGNATURE), SIGNATURE, noise_level=0.0)
    inputs, targets, params = data()
    model.fit_statistics(inputs, targets, params)
    assert (model.name, model.predict, model.output_filter) == ("Linear", "increment", None)
    model.save_pretrained(tmp_path / "model")
    with pytest.raises(DataFormatError, match=r"registered first: sk.register_model\('Linear', factory\)"):
        sk.from_pretrained(tmp_path / "model")
    sk.register_model("Linear", Linear)
    assert torch.equal(sk.from_pretrained(tmp_path / "model")(inputs, params), model(inputs, params))
    with pytest.raises(ConfigError, match="did you mean 'predict'"):
        wrap_module(Linear(SIGNATURE), SIGNATURE, predicts="direct")


def test_the_grid_is_given_on_the_unit_box_where_cells_differ():
    model = wrap_module(Linear(SIGNATURE), SIGNATURE)
    x, params = torch.randn(1, 2, 4, 2), torch.zeros(1, 1)
    model(x, params)
    model(x, params, sk.Grid.from_edges([torch.tensor([10.0, 11.0, 13.0, 16.0, 20.0])]))
    assert model.module.grids[0] is None
    assert model.module.grids[1].edges[0].tolist() == pytest.approx([0.0, 0.1, 0.3, 0.6, 1.0])


def test_wrong_modules_are_refused():
    class Narrow(Linear):
        def forward(self, x, params=None, grid=None):
            return super().forward(x, params, grid)[..., :1]

    with pytest.raises(ShapeError, match=r"must map .* to \(1, 4, 2\), got \(1, 4, 1\)"):
        wrap_module(Narrow(SIGNATURE), SIGNATURE)(torch.randn(1, 2, 4, 2), torch.zeros(1, 1))
    with pytest.raises(ConfigError, match=r"must return a torch\.nn\.Module, got dict"):
        catalog.ModuleOperator("wrong", lambda signature: {}, SIGNATURE, catalog.ModuleConfig(), sk.models.Stages())
