"""Operators from folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from spectrakan.config import build_settings
from spectrakan.errors import ConfigError, DataFormatError, nearest
from spectrakan.fields import OperatorSignature
from spectrakan.models.catalog import MODELS
from spectrakan.models.operator import Operator
from spectrakan.nn.mean_field import MeanField
from spectrakan.storage import load_bundle


def from_pretrained(folder: Path | str) -> Operator:
    """The operator that `save_pretrained` wrote, bit for bit; anything else raises `DataFormatError`."""
    bundle = load_bundle(Path(folder))
    document, weights = bundle.documents.get("model"), bundle.tensors.get("weights")
    if not isinstance(document, dict) or document.keys() != {"name", "config", "signature"} or weights is None:
        raise DataFormatError(f"'{folder}' holds no model: expected model.json and weights.safetensors")
    try:
        signature = build_settings(OperatorSignature, document["signature"], where="signature")
        model = _built(document["name"], signature, document["config"])
    except (ConfigError, TypeError, AttributeError) as problem:
        raise DataFormatError(f"the model in '{folder}' cannot be built: {problem}") from None
    _load(model, dict(weights), folder)
    return model


def _built(name: str, signature: OperatorSignature, config: dict[str, Any]) -> Operator:
    """The model of a whole config; settings younger than the folder are as they are where nobody asks for anything.

    A default that follows the signature is not for them: the model was trained without.
    """
    if name not in MODELS:
        raise ConfigError(f"unknown model '{name}'{nearest(name, MODELS)}")
    operator, config_class = MODELS[name]
    return operator(signature, build_settings(config_class, config, where=f"model {name}"))


def _load(model: Operator, weights: dict[str, Tensor], folder: Path | str) -> None:
    for name, module in model.named_modules():
        if isinstance(module, MeanField):
            module.make_room(weights.get(f"{name}.values"))
    expected: dict[str, Any] = model.state_dict()
    if missing := sorted(expected.keys() - weights.keys()):
        raise DataFormatError(f"'{folder}' lacks the weights {', '.join(missing)}")
    if foreign := sorted(weights.keys() - expected.keys()):
        raise DataFormatError(f"'{folder}' holds weights that the model has no place for: {', '.join(foreign)}")
    for key, tensor in weights.items():
        if tensor.shape != expected[key].shape:
            raise DataFormatError(
                f"'{folder}': {key} must have shape {tuple(expected[key].shape)}, got {tuple(tensor.shape)}"
            )
    model.to(next(tensor.dtype for tensor in weights.values() if tensor.is_floating_point()))
    model.load_state_dict(weights)
