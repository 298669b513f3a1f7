"""Certificates of whole models: no attack beats a bound, in every variant; and an injected lie is found out."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import spectrakan as sk
from spectrakan.cli.certify import print_certificate
from spectrakan.data.generate import generate
from spectrakan.errors import ConfigError
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.models.stages import UNLIMITED
from spectrakan.theory import sample_bounds
from spectrakan.theory.attack import AttackSettings, attack, euclid, largest
from spectrakan.theory.certificate import Certificate
from spectrakan.theory.certify import TOO_LARGE
from spectrakan.theory.control import cap_slopes, certified_bound
from spectrakan.theory.parts import model_map, token_kan
from spectrakan.theory.sample_bounds import QUANTITIES, bound_sample
from spectrakan.training import train

SMALL = {
    "pool": "center",
    "conditioning": "readout",
    "width": 4,
    "num_modes": 3,
    "num_layers": 2,
    "coarse_num_layers": 2,
    "coarse_mixing": "axial",
    "block": "skip",
    "noise_level": 0.0,
    "coarse_num_modes": 2,
    "token_width": 4,
    "attention_width": 4,
    "readout_width": 8,
}
LIGHT = AttackSettings(starts=4, steps=5, pairs=8)


def small_model(dims: int = 1, num_params: int = 0, seed: int = 0, fields: int = 1, **config) -> SpectraKAN:
    signature = sk.OperatorSignature(
        space_dims=dims,
        history=2,
        in_channels=fields,
        out_channels=fields,
        num_params=num_params,
        boundary=("wall",) * dims,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = sk.build_model("spectrakan", signature, **(SMALL | config))
        if model.output_filter is not None:
            torch.nn.init.uniform_(model.output_filter.gate)
        if model.conditioning is not None:
            for layer in (model.conditioning.film, model.conditioning.transport):
                if layer is not None:
                    torch.nn.init.normal_(layer.weight, std=0.1)
        if model.product_gain is not None:
            torch.nn.init.normal_(model.product_gain)
            torch.nn.init.normal_(model.readout.out.weight)
    return model


def held(
    model: SpectraKAN, radius: float, cells: tuple[int, ...], config: AttackSettings = LIGHT
) -> dict[str, float]:
    """Every bound against its attack; the ratios of rates."""
    model = model.double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    history = torch.randn(1, 2, *cells, model.signature.in_channels, generator=generator).double()
    count = model.signature.num_params
    params = torch.randn(1, count, generator=generator).double() if count else None
    axes = model.axes(history, None)
    (bounds,) = bound_sample(model, history, params, axes, [radius])
    ratios = {}
    for name in QUANTITIES:
        found = attack(
            model_map(model, name, params, axes), history, radius, largest if name == "prediction" else euclid, config
        )
        assert found.slope <= bounds.rates[name], name
        assert found.change <= bounds.change[name], name
        ratios[name] = bounds.rates[name] / found.slope
    return ratios


VARIANTS = [
    {"block": "residual"},
    {"block": "plain", "extension": "zero"},
    {"coarse_mixing": "joint", "basis": "extended"},
    {"basis": "sine", "coarse_num_layers": 0},
    {"squeeze_excite": "plain"},
    {"basis": "extended", "activation": "silu"},
    {"use_gml": False},
    {"token": "mlp", "num_params": 2},
    {"token": "raw", "pool": "center+mean+std"},
    {"pool": "mean", "squeeze_excite": "none", "activation": "relu"},
    {"pool": "center+mean+std"},
    {"block": "residual", "squeeze_excite": "none", "activation": "relu"},
    {"noise_level": 0.1},
    {"noise_level": 0.1, "predict": "direct"},
    {"multiplicative_readout": True},
    {"multiplicative_readout": True, "noise_level": 0.1, "fields": 2},
    {"multiplicative_readout": True, "predict": "direct", "fields": 2},
    {"conditioning": "film"},
    {"conditioning": "transport"},
    {"conditioning": "both", "block": "residual"},
]


@pytest.mark.parametrize("config", VARIANTS, ids=lambda config: "-".join(map(str, config.values())))
def test_no_attack_beats_a_bound_in_any_variant(config):
    ratios = held(small_model(**config), 0.1, (9,))
    assert max(ratios.values()) < 10


@pytest.mark.parametrize("ends", [(-UNLIMITED, UNLIMITED), (-UNLIMITED, 0.2), (-0.1, UNLIMITED)], ids=str)
def test_limits_at_one_side_or_none_have_bounds_that_hold(ends):
    cut = small_model(predict="direct", range_margin=0.0)
    assert cut.limits is not None
    cut.limits.copy_(torch.tensor(ends)[:, None])
    assert [abs(end) < UNLIMITED for end in cut.limits[:, 0].double().tolist()] == [abs(end) < 1 for end in ends]
    held(cut, 0.5, (9,))


def test_predictions_that_are_cut_off_have_bounds_that_hold_and_are_smaller():
    free, cut = (small_model(predict="direct", range_margin=margin) for margin in (None, 0.0))
    frames = torch.randn(1, 2, 9, 1, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        values = free(frames)
    assert cut.limits is not None
    cut.limits.copy_(torch.stack([values.quantile(0.3), values.quantile(0.7)])[:, None])
    held(cut, 0.5, (9,))
    bounds = []
    for model in (free.double().eval().requires_grad_(False), cut):
        history = frames.double()
        bounds.append(bound_sample(model, history, None, model.axes(history, None), [0.5])[0].change["prediction"])
    assert bounds[1] < 0.6 * bounds[0]


def test_two_dimensions():
    assert max(held(small_model(2, coarse_mixing="joint", basis="auto"), 0.1, (6, 5)).values()) < 10


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6), radius=st.floats(1e-3, 1.0))
def test_bounds_hold_for_large_balls_too(seed, radius):
    held(small_model(seed=seed), radius, (8,), AttackSettings(starts=4, steps=3, pairs=4))


@pytest.mark.parametrize("config", [{}, {"multiplicative_readout": True, "fields": 2}], ids=["plain", "product"])
def test_a_tiny_ball_comes_down_to_what_ascent_finds(config):
    ratios = held(small_model(**config), 1e-4, (9,), AttackSettings(starts=16, steps=10))
    assert max(ratios.values()) < 1.1


@pytest.mark.slow
def test_ten_thousand_pairs_never_beat_a_bound():
    held(small_model(), 0.1, (9,), AttackSettings(starts=32, steps=20, pairs=10_000))


@pytest.mark.slow
def test_a_trained_model_keeps_its_bounds_against_ten_thousand_pairs_and_flatter_splines_lower_them():
    data = ["data.num_samples=12", "data.resolution=16", "data.history=2", "training.epochs=2", "runtime.threads=1"]
    one_step = ["mode=one_step", "horizon=1", "curriculum=0.0", "gradient_steps=1"]
    size = ["width=8", "num_modes=4", "num_layers=2", "coarse_num_layers=1"]
    changes = [*data, *(f"training.{each}" for each in one_step), *(f"model.{each}" for each in size)]
    model = train("diffusion_reaction1d", "spectrakan", changes).model
    unseen = generate("diffusion_reaction1d", 1, 16, seed=1000)
    inputs = torch.as_tensor(unseen.values[:, :2], dtype=torch.float32)
    hard = AttackSettings(starts=32, steps=20, pairs=10_000)
    found = sk.certify(model, inputs, radius=0.02, config=hard)
    assert found.beaten == ()
    assert set(found.status.values()) == {"certified"}
    flatter = copy.deepcopy(model)
    cap_slopes(token_kan(flatter), 0.1 * certified_bound(token_kan(flatter)))
    lowered = sk.certify(flatter, inputs, radius=0.02, config=LIGHT)
    for name in ("kan_hull_product", "token", "modulation_covariance"):
        assert lowered.entries[name].value < found.entries[name].value, name
    assert lowered.log_modulation_paper < found.log_modulation_paper


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    generator = torch.Generator().manual_seed(2)
    return sk.certify(small_model(), torch.randn(2, 2, 8, 1, generator=generator), radius=0.05, config=LIGHT)


def test_a_certificate_says_what_is_proved(certificate):
    assert certificate.beaten == ()
    assert set(certificate.status.values()) == {"certified"}
    assert (
        certificate.modulation_attacked
        <= certificate.modulation
        <= certificate.entries["modulation_covariance"].value
    )
    assert certificate.log_modulation_paper is not None
    shift = 2 * certificate.constants["M_s"]
    assert math.log(certificate.modulation) <= certificate.log_modulation_paper - shift + 1e-9
    assert certificate.kan <= certificate.entries["kan_exact_product"].value
    for layer in certificate.edges:
        for lemma, exact, here in zip(layer.lemma, layer.exact, layer.on_region, strict=True):
            assert all(a >= b >= c * (1 - 1e-7) for a, b, c in zip(lemma, exact, here, strict=True))
    record = json.loads(certificate.to_json())
    assert record["entries"]["modulation"]["status"] == "certified"
    assert record["modulation_attacked"] == certificate.modulation_attacked


def test_a_falsified_bound_is_found_out(certificate):
    entry = certificate.entries["modulation"]
    lie = replace(entry, value=0.9 * certificate.modulation_attacked)
    refuted = replace(certificate, entries={**certificate.entries, "modulation": lie})
    assert refuted.beaten == ("modulation",)


def test_a_cap_is_told_as_held_or_broken(certificate):
    bound = certificate.entries["kan_hull_product"].value
    assert "holds" in certificate.capped(bound, "hull").notes[-1]
    broken = certificate.capped(0.9 * bound, "hull")
    assert "BROKEN" in broken.notes[-1]
    assert broken.beaten == ("kan_cap",)


def test_large_fields_are_never_called_certified(monkeypatch):
    monkeypatch.setattr(sample_bounds, "MOST_ROWS", 10)
    found = sk.certify(small_model(), torch.randn(1, 2, 8, 1), radius=0.05, config=LIGHT)
    status = found.status
    assert status["token"] == status["kan"] == "certified"
    assert {name for name, kind in status.items() if kind == "estimated"} == {
        "modulation",
        "modulation_change",
        "prediction",
        "prediction_change",
    }
    assert found.notes == (TOO_LARGE,)
    assert found.beaten == ()


def test_numbers_beyond_floats_are_null_in_json(certificate):
    vast = replace(certificate.entries["modulation_paper"], value=math.inf)
    record = replace(certificate, entries={**certificate.entries, "modulation_paper": vast})
    assert json.loads(record.to_json())["entries"]["modulation_paper"]["value"] is None


def test_an_unbounded_entry_is_shown_without_a_finite_bound(certificate, capsys):
    vast = replace(certificate.entries["prediction"], value=math.inf)
    print_certificate(replace(certificate, entries={"prediction": vast, "prediction_change": vast}))
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("prediction ")]
    assert row.split()[1:4] == ["no", "finite", "bound"]


def test_what_cannot_be_certified_is_refused():
    signature = sk.OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    with pytest.raises(ConfigError, match="spectrakan model, got 'fno'"):
        sk.certify(sk.build_model("fno", signature), torch.zeros(1, 1, 8, 1))
    with pytest.raises(ConfigError, match="radius"):
        sk.certify(small_model(), torch.zeros(1, 2, 8, 1), radius=0.0)
