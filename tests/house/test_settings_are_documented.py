"""Every setting of every model says in a line what it means."""

from __future__ import annotations

import dataclasses

import pytest

from spectrakan.config import describe
from spectrakan.fields import OperatorSignature
from spectrakan.models.catalog import MODELS, VARIANTS, build_model


@pytest.mark.parametrize("name", sorted(MODELS))
def test_each_field_has_a_docstring(name):
    meanings = describe(MODELS[name][1])
    assert meanings.keys() == {field.name for field in dataclasses.fields(MODELS[name][1])}
    assert not [field for field, meaning in meanings.items() if not meaning]


@pytest.mark.parametrize(("name", "variant"), [(name, variant) for name in VARIANTS for variant in VARIANTS[name]])
def test_each_variant_can_be_built(name, variant):
    facts = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1)
    assert build_model(name, facts, variant=variant).name == name
