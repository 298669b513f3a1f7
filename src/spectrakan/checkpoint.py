"""The whole state of a training run in a folder: safetensors and JSON, no pickle, no time stamp.

Two runs that did the same have checkpoints of the same bytes.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spectrakan.config import as_mapping
from spectrakan.errors import DataFormatError, RunError
from spectrakan.models.operator import Operator
from spectrakan.storage import Bundle, load_bundle, save_bundle

Tensors = Mapping[str, Tensor]
FULL = {errno.ENOSPC: "the disk is full", errno.EFBIG: "the file would be too large", errno.EDQUOT: "quota exceeded"}


@dataclass(frozen=True)
class Checkpoint:
    """What it takes to go on as if nothing had happened.

    `weights` of the model, `average` their moving average (empty without one), `optimizer` as torch's
    `state_dict()`, `random` the states of random number generators, `position` plain facts: step, epoch,
    batch, best score. `good` is an earlier state, to which training goes back if its numbers spoil.
    """

    model: Mapping[str, Any]
    weights: Tensors
    optimizer: Mapping[str, Any]
    position: Mapping[str, Any]
    average: Tensors = field(default_factory=dict)
    random: Tensors = field(default_factory=dict)
    good: Checkpoint | None = None


TENSORS = ("weights", "average", "optimizer", "random")
DOCUMENTS = ("optimizer", "position")
GOOD = "good_"
"""What the names of the earlier state's parts begin with."""


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint in one step; if that fails, `RunError` says why and the old one stands."""
    parts = _parts(checkpoint, "")
    earlier = Bundle({}, {}) if checkpoint.good is None else _parts(checkpoint.good, GOOD)
    documents = {"model": checkpoint.model, **parts.documents, **earlier.documents}
    _save(folder, Bundle(tensors={**parts.tensors, **earlier.tensors}, documents=documents))


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint, every byte of it checked; anything else raises `DataFormatError`."""
    bundle = load_bundle(folder)
    present = bundle.tensors.keys() | bundle.documents.keys()
    earlier = any(name.startswith(GOOD) for name in present)
    missing = {"model"} - bundle.documents.keys()
    for prefix in ("", GOOD) if earlier else ("",):
        missing |= {prefix + name for name in TENSORS} - bundle.tensors.keys()
        missing |= {prefix + name for name in DOCUMENTS} - bundle.documents.keys()
    if missing:
        raise DataFormatError(f"'{folder}' is no training checkpoint: missing {', '.join(sorted(missing))}")
    good = _from_parts(bundle, GOOD, folder) if earlier else None
    return replace(_from_parts(bundle, "", folder), good=good)


def _parts(checkpoint: Checkpoint, prefix: str) -> Bundle:
    """A state as named tensors and documents; the model is described once for all states."""
    moments, numbers = _flatten(checkpoint.optimizer)
    tensors = {
        "weights": checkpoint.weights,
        "average": checkpoint.average,
        "optimizer": moments,
        "random": checkpoint.random,
    }
    documents = {"optimizer": numbers, "position": checkpoint.position}
    return Bundle(
        tensors={prefix + name: tensor for name, tensor in tensors.items()},
        documents={prefix + name: document for name, document in documents.items()},
    )


def _from_parts(bundle: Bundle, prefix: str, folder: Path) -> Checkpoint:
    tensors, documents = bundle.tensors, bundle.documents
    return Checkpoint(
        model=documents["model"],
        weights=tensors[prefix + "weights"],
        average=tensors[prefix + "average"],
        optimizer=_unflatten(tensors[prefix + "optimizer"], documents[prefix + "optimizer"], folder),
        random=tensors[prefix + "random"],
        position=documents[prefix + "position"],
    )


def save_best(folder: Path, model: Mapping[str, Any], weights: Tensors) -> None:
    """Write weights as `save_pretrained` does, refusing any that are not finite."""
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise RunError(f"the best weights would not be finite: '{name}' holds a NaN or an infinity")
    _save(folder, Bundle(tensors={"weights": weights}, documents={"model": model}))


def describe_model(model: Operator) -> dict[str, Any]:
    """What `from_pretrained` needs beside the weights."""
    return {"name": model.name, "config": as_mapping(model.config), "signature": as_mapping(model.signature)}


def _save(folder: Path, bundle: Bundle) -> None:
    try:
        save_bundle(folder, bundle)
    except OSError as problem:
        reason = FULL.get(problem.errno or 0, problem.strerror)
        raise RunError(
            f"cannot write the checkpoint '{folder}': {reason}. The previous one is intact; "
            "make room, then go on with `spectrakan train --resume`"
        ) from None


def _flatten(state: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Torch's nested optimizer state as named tensors and a JSON document."""
    tensors, numbers = {}, {}
    for index, entries in state.get("state", {}).items():
        for name, value in entries.items():
            key = f"{index}.{name}"
            if isinstance(value, Tensor):
                tensors[key] = value
            else:
                numbers[key] = value
    return tensors, {"numbers": numbers, "groups": list(state.get("param_groups", []))}


def _unflatten(tensors: Tensors, document: Any, folder: Path) -> dict[str, Any]:
    state: dict[int, dict[str, Any]] = {}
    try:
        for key, value in [*tensors.items(), *document["numbers"].items()]:
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = value
        groups = [{name: _pair(value) for name, value in group.items()} for group in document["groups"]]
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise DataFormatError(f"the optimizer's state in '{folder}' is malformed: {problem!r}") from None
    # Torch maps names to parameters by this order, so it must be theirs.
    for group in groups:
        group["params"] = list(group["params"])
    return {"state": dict(sorted(state.items())), "param_groups": groups}


def _pair(value: Any) -> Any:
    """JSON has no tuples, Adam's betas are one."""
    return tuple(value) if isinstance(value, list) else value
