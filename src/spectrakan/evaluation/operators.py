"""What can be evaluated: an operator of this package, or any `nn.Module` that is called like one."""

import re
from collections.abc import Sequence
from typing import cast

import torch
from torch import nn

from spectrakan.data.windows import signature as signature_of
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import OperatorSignature, Trajectories
from spectrakan.models.operator import Operator
from spectrakan.models.own_module import wrap_module

UNNAMED = re.compile(r"u\d*")
"""Names that a loader gives to fields of files without names."""


def as_operator(model: nn.Module, trajectories: Trajectories, history: int | None = None) -> Operator:
    """The model as an operator, checked against the data.

    A plain module is called as `module(x, params=None, grid=None)` and maps `(B, history, *space, in)` to
    `(B, *space, out)` in physical units; it reads `history` frames: as given, else its attribute `history`, else 1.
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"expected an operator or an nn.Module, got {type(model).__name__}")
    own = getattr(model, "signature", None)
    if not isinstance(own, OperatorSignature):
        frames = history or getattr(model, "history", 1)
        if not isinstance(frames, int) or frames < 1:
            raise ConfigError(f"the history of {type(model).__name__} must be a whole number above 0, got {frames!r}")
        operator = wrap_module(model, signature_of(trajectories, frames), predict="direct", noise_level=0.0)
        operator.load_state_dict({"fitted": torch.tensor(True)}, strict=False)  # its units are those of the data
        return operator.to(*numbers_of(model))
    if history not in (None, own.history):
        raise ConfigError(f"the model reads {own.history} frames, got history {history}; leave it out")
    frames = 1 if trajectories.steady else own.history
    require_fit(own, signature_of(trajectories, frames, dt_input=takes_time_step(own, trajectories)))
    return cast(Operator, model)


def takes_time_step(model: OperatorSignature, trajectories: Trajectories) -> bool:
    """Whether the time step is a parameter of the model that windows of these data have to fill in."""
    return "dt" in model.param_names and "dt" not in trajectories.param_names and not trajectories.steady


def require_fit(model: OperatorSignature, data: OperatorSignature) -> None:
    """Refuse data with other fields, axes or parameters than the model's: in number, in names or in order."""
    if _described(model) != _described(data):
        raise ShapeError(
            f"the model takes {_described(model)}, the data have {_described(data)}; use data of the model's problem"
        )
    _require_names("fields", model.in_fields, data.in_fields, "inputs" if model.steady else "values")
    _require_names("output fields", model.out_fields, data.out_fields, "values")
    _require_names("parameters", model.param_names, data.param_names, "params")


def _require_names(kind: str, model: Sequence[str], data: Sequence[str], array: str) -> None:
    """Compare names where both sides have them; the names of unnamed files mean nothing."""
    unnamed = any(all(UNNAMED.fullmatch(name) for name in names) for names in (model, data))
    if unnamed or tuple(model) == tuple(data):
        return
    both = f"the model's {kind} are {', '.join(model)}, the data's are {', '.join(data)}"
    if sorted(model) == sorted(data):
        order = [list(data).index(name) for name in model]
        raise ShapeError(f"{both}: reorder the data by {array}[..., {order}] and their names alike")
    raise ShapeError(f"{both}; use data of the model's problem, or give the data these names if they mean the same")


def _described(signature: OperatorSignature) -> str:
    steady = f"steady fields to {signature.out_channels}"
    kind = f"{signature.in_channels} {steady if signature.steady else 'evolving fields'}"
    return f"{kind} on {signature.space_dims} axes with {signature.num_params} parameters a sample"


def numbers_of(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Device and type of the model's numbers; float32 on the CPU for a model without any."""
    like = next((tensor for tensor in model.state_dict().values() if tensor.is_floating_point()), torch.empty(0))
    return like.device, like.dtype
