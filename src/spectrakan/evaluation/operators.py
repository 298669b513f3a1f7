"""What can be evaluated: an operator of this package, or any `nn.Module` that is called like one."""

import inspect
import re
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from spectrakan.data.windows import signature as signature_of
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Grid, OperatorSignature, Trajectories
from spectrakan.models.operator import Operator

UNNAMED = re.compile(r"u\d*")
"""Names that a loader gives to fields of files without names."""


class ModuleOperator(nn.Module):
    """A plain module as an operator in physical units; its signature comes from the data.

    The module is called as `module(x, params=None, grid=None)` and maps `(B, history, *space, in)` to
    `(B, *space, out)`.
    """

    def __init__(self, module: nn.Module, signature: OperatorSignature) -> None:
        super().__init__()
        self.module, self.signature, self.name = module, signature, type(module).__name__
        try:
            inspect.signature(module.forward).bind(None, params=None, grid=None)
        except TypeError:
            raise ConfigError(
                f"{self.name} must be called as module(x, params=None, grid=None), its forward takes "
                f"{inspect.signature(module.forward)}; add the missing arguments"
            ) from None

    def forward(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """Call the module and check the shape of its output."""
        frame = self.module(x, params=params, grid=grid)
        expected = (x.shape[0], *x.shape[2:-1], self.signature.out_channels)
        if not isinstance(frame, Tensor) or tuple(frame.shape) != expected:
            found = tuple(frame.shape) if isinstance(frame, Tensor) else type(frame).__name__
            raise ShapeError(
                f"{self.name} must map {tuple(x.shape)} = (batch, history, *space, fields) to {expected}, got {found}"
            )
        return frame


Evaluable = Operator | ModuleOperator


def as_operator(model: nn.Module, trajectories: Trajectories, history: int | None = None) -> Evaluable:
    """The model with a name and a signature, checked against the data.

    A plain module reads `history` frames: as given, else its attribute `history`, else 1.
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"expected an operator or an nn.Module, got {type(model).__name__}")
    own = getattr(model, "signature", None)
    if not isinstance(own, OperatorSignature):
        frames = history or getattr(model, "history", 1)
        if not isinstance(frames, int) or frames < 1:
            raise ConfigError(f"the history of {type(model).__name__} must be a whole number above 0, got {frames!r}")
        return ModuleOperator(model, signature_of(trajectories, frames))
    if history not in (None, own.history):
        raise ConfigError(f"the model reads {own.history} frames, got history {history}; leave it out")
    frames = 1 if trajectories.steady else own.history
    require_fit(own, signature_of(trajectories, frames, dt_input=takes_time_step(own, trajectories)))
    return cast(Evaluable, model)


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
