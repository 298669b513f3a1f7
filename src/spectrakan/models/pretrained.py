"""Operators from folders, compared with the file before memory is taken; all faults raise `DataFormatError`."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spectrakan.config import build_settings
from spectrakan.errors import DataFormatError, SpectraKANError
from spectrakan.fields import OperatorSignature
from spectrakan.models.catalog import config_class, construct
from spectrakan.models.hub import fetched, is_repository
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Stages
from spectrakan.nn.mean_field import MeanField
from spectrakan.storage import load_bundle, require_plain_weights

DEPTHS = re.compile("layers|depth|levels")
"""Settings that multiply the parts of a model; each part has at least one tensor."""
UNBUILDABLE = (SpectraKANError, TypeError, AttributeError, ValueError, RuntimeError, OverflowError, KeyError)

PRETRAINED = Path(__file__).resolve().parents[1] / "pretrained"
"""Folders of the models that ship with the package; beside each its card (`.md`) and its scores (`.json`)."""


def shipped() -> list[str]:
    """Names of the models that ship with the package.

    >>> shipped()
    ['cns1d-small', 'darcy2d-small', 'droplet2d-small']
    """
    return sorted(path.parent.name for path in PRETRAINED.glob("*/model.json"))


def from_pretrained(folder: Path | str, **options: Any) -> Operator:
    """The operator that `save_pretrained` wrote, bit for bit; of a run's folder, the best one.

    The name of a model that ships with the package (`shipped`) is taken for its folder, unless such a folder is here.
    `organisation/name` that is no folder here is a repository of the Hugging Face Hub (extra `hub`); `options` are
    then `revision`, `cache_dir`, `local_files_only`, `force_download` and `token` of `hf_hub_download`.
    The model is first built without memory and compared with the names and shapes in the file. Anything else than a
    saved model raises `DataFormatError`.
    """
    if is_repository(folder):
        with fetched(str(folder), **options) as here:
            return from_pretrained(here)
    if not Path(folder).exists() and str(folder) in shipped():
        folder = PRETRAINED / folder
    folder = Path(folder)
    folder = folder / "checkpoints" / "best" if (folder / "checkpoints").is_dir() else folder
    bundle = load_bundle(folder)
    document, weights = bundle.documents.get("model"), bundle.tensors.get("weights")
    keys = {"name", "config", "stages", "signature"}
    if not isinstance(document, dict) or document.keys() != keys or weights is None:
        raise DataFormatError(f"'{folder}' holds no model: expected model.json and weights.safetensors")
    with torch.device("meta"):
        draft = _built(document, folder, len(weights))
    _compare(draft, weights, folder)
    kinds = {tensor.dtype for tensor in weights.values() if tensor.is_floating_point()}
    if len(kinds) != 1:
        raise DataFormatError(f"'{folder}' mixes weights of types {', '.join(sorted(map(str, kinds)))}")
    model = _built(document, folder, len(weights)).to(kinds.pop())
    model.load_state_dict(dict(weights))
    return model


def _built(document: Mapping[str, Any], folder: Path, tensors: int) -> Operator:
    name = document["name"]
    try:
        for key, value in document["config"].items():
            if DEPTHS.search(key) and isinstance(value, int) and value > tensors:
                raise ValueError(f"{key}={value}, and only {tensors} tensors are saved")
        signature = build_settings(OperatorSignature, document["signature"], where="signature")
        config = build_settings(config_class(name), document["config"], where=f"model {name}")
        return construct(name, signature, config, build_settings(Stages, document["stages"], where=f"model {name}"))
    except UNBUILDABLE as problem:
        hint = f"; a model of your own is registered first: sk.register_model('{name}', factory)"
        unknown = str(problem).startswith("unknown model")
        raise DataFormatError(
            f"the model in '{folder}' cannot be built: {problem}{hint if unknown else ''}"
        ) from None


def _compare(model: Operator, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse names, shapes and types that are not the model's, and numbers that are not finite."""
    require_plain_weights(weights, f"'{folder}'")
    for name, module in model.named_modules():
        if isinstance(module, MeanField) and f"{name}.values" in weights:
            module.resize(weights[f"{name}.values"].shape)
    expected = model.state_dict()
    if missing := sorted(expected.keys() - weights.keys()):
        raise DataFormatError(f"'{folder}' lacks the weights {', '.join(missing)}")
    if foreign := sorted(weights.keys() - expected.keys()):
        raise DataFormatError(f"'{folder}' holds weights that the model has no place for: {', '.join(foreign)}")
    for key, tensor in weights.items():
        if tensor.shape != expected[key].shape:
            raise DataFormatError(
                f"'{folder}': {key} must have shape {tuple(expected[key].shape)}, got {tuple(tensor.shape)}"
            )
        if tensor.is_floating_point() != expected[key].is_floating_point():
            raise DataFormatError(f"'{folder}': {key} must be of type {expected[key].dtype}, got {tensor.dtype}")
