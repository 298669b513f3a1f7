"""The whole state of a training run in a folder: safetensors and JSON, no pickle, no time stamp.

Equal runs have checkpoints of equal bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from spectrakan.errors import DataFormatError, RunError
from spectrakan.storage import Bundle, load_bundle, require_plain_weights, save_bundle, versions

Tensors = Mapping[str, Tensor]
RUN = "run"
"""The document that binds a folder to its run."""


@dataclass(frozen=True)
class Checkpoint:
    """All that is needed to continue a run bit for bit.

    `weights` of the model, `average` their moving average (empty without one), `optimizer` as torch's
    `state_dict()`, `random` the states of random number generators, `position` plain values: step, epoch,
    batch, best score.
    `run_id` is that of the run (`RunFolder.run_id`), `log_lines` the length of its log at this point.
    """

    model: Mapping[str, Any]
    weights: Tensors
    optimizer: Mapping[str, Any]
    position: Mapping[str, Any]
    average: Tensors = field(default_factory=dict)
    random: Tensors = field(default_factory=dict)
    run_id: str = ""
    log_lines: int | None = None


TENSORS = ("weights", "average", "optimizer", "random")
DOCUMENTS = ("model", "optimizer", "position")


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int = 2) -> None:
    """Write a checkpoint in one step and keep the last `keep`; on failure `RunError` says why and the old one stands.

    Write the log up to this point first (`RunLog.mark`), so that no line is lost between the two.
    """
    buffers, numbers = _flatten(checkpoint.optimizer)
    tensors = (checkpoint.weights, checkpoint.average, buffers, checkpoint.random)
    bound = {"id": checkpoint.run_id, "log_lines": checkpoint.log_lines}
    documents = {"model": checkpoint.model, "optimizer": numbers, "position": checkpoint.position, RUN: bound}
    _save(folder, Bundle(tensors=dict(zip(TENSORS, tensors, strict=True)), documents=documents), keep)


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint, every byte of it checked; anything else raises `DataFormatError`."""
    bundle = load_bundle(folder)
    tensors, documents = bundle.tensors, bundle.documents
    if missing := {*TENSORS} - tensors.keys() | {*DOCUMENTS} - documents.keys():
        raise DataFormatError(f"'{folder}' is no training checkpoint: missing {', '.join(sorted(missing))}")
    bound = _bound(bundle, folder)
    return Checkpoint(
        model=documents["model"],
        weights=tensors["weights"],
        average=tensors["average"],
        optimizer=_unflatten(tensors["optimizer"], documents["optimizer"], folder),
        random=tensors["random"],
        position=documents["position"],
        run_id=bound["id"],
        log_lines=bound["log_lines"],
    )


def load_newest(folder: Path) -> tuple[Checkpoint, str | None]:
    """The newest sound one of the checkpoints that are kept, and a sentence for the user if it is not the newest."""
    problems: list[DataFormatError] = []
    for path in versions(folder):
        try:
            found = load_checkpoint(path)
        except DataFormatError as problem:
            problems.append(problem)
            continue
        notice = f"{problems[0]}; going on from the checkpoint before it, at '{path}'" if problems else None
        return found, notice
    raise problems[0] if problems else DataFormatError(f"there is no checkpoint at '{folder}'")


def save_best(folder: Path, model: Mapping[str, Any], weights: Tensors, run_id: str = "") -> None:
    """Write weights as `save_pretrained` does, refusing any that are not finite."""
    try:
        require_plain_weights(weights, "the best weights would not be finite")
    except DataFormatError as problem:
        raise RunError(str(problem)) from None
    _save(
        folder,
        Bundle(tensors={"weights": weights}, documents={"model": model, RUN: {"id": run_id, "log_lines": None}}),
    )


def load_best(folder: Path, run_id: str | None = None) -> dict[str, Tensor]:
    """The weights that `save_best` wrote; with `run_id`, those of another run raise `RunError`."""
    bundle = load_bundle(folder)
    if run_id is not None:
        require_same_run(folder, _bound(bundle, folder)["id"], run_id)
    return dict(bundle.tensors["weights"])


def require_same_run(folder: Path, found: str, run_id: str) -> None:
    """Refuse a folder (`last` or `best`) whose run is `found` and not `run_id`."""
    if found != run_id:
        other = f"another run ({found[:12]})" if found else "no known run"
        raise RunError(
            f"'{folder}' is of {other}, this one is {run_id[:12]}: parts of different runs must not be mixed; "
            "restore the folder from a copy of this run"
        )


def _bound(bundle: Bundle, folder: Path) -> dict[str, Any]:
    document = bundle.documents.get(RUN)
    if isinstance(document, dict) and document.keys() == {"id", "log_lines"} and isinstance(document["id"], str):
        return document
    raise DataFormatError(f"'{folder}' does not name its run: {RUN}.json must hold id and log_lines")


def _save(folder: Path, bundle: Bundle, keep: int = 1) -> None:
    try:
        save_bundle(folder, bundle, keep=keep)
    except RunError as problem:
        raise RunError(
            f"cannot write the checkpoint: {problem}. The previous one is intact; then go on with "
            "`spectrakan train --resume`"
        ) from None


def _flatten(state: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Torch's nested optimizer state as named tensors and a JSON document."""
    values = {
        f"{index}.{name}": value for index, entries in state["state"].items() for name, value in entries.items()
    }
    tensors = {key: value for key, value in values.items() if isinstance(value, Tensor)}
    numbers = {key: value for key, value in values.items() if key not in tensors}
    return tensors, {"numbers": numbers, "groups": list(state["param_groups"])}


def _unflatten(tensors: Tensors, document: Any, folder: Path) -> dict[str, Any]:
    state: dict[int, dict[str, Any]] = {}
    try:
        for key, value in [*tensors.items(), *document["numbers"].items()]:
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = value
        # JSON has no tuples, Adam's betas are one; `params` stay a list.
        groups = [
            {name: tuple(value) if name == "betas" else value for name, value in group.items()}
            for group in document["groups"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise DataFormatError(f"the optimizer's state in '{folder}' is malformed: {problem!r}") from None
    # Torch maps names to parameters by this order, so it must be theirs.
    return {"state": dict(sorted(state.items())), "param_groups": groups}
