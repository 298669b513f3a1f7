"""What every operator is: physical units in and out, a signature, and a folder to be kept in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError, ShapeError
from spectrakan.fields import Grid, OperatorSignature, Window
from spectrakan.nn.answer_gates import AnswerGates
from spectrakan.nn.axis import Axis, axes_of
from spectrakan.nn.mean_field import MeanField
from spectrakan.nn.normalizer import Normalizer
from spectrakan.numerics.float64 import to_float64
from spectrakan.storage import Bundle, save_bundle

Predict = Literal["auto", "increment", "departure", "direct"]
MIN_CELLS = 4


class Operator(nn.Module):
    """A map from a history of fields to the next field: (B, history, *space, in) -> (B, *space, out).

    `forward` takes and gives physical units; `forward_normalized`, which the loss sees, is the same map at unit
    scale. A subclass has a `name` and a method `respond`, the network itself. Its answer is what is added to the last
    frame (`predict="increment"`; in "auto": where the output is the next frame of the input), to the mean training
    field ("departure"), or to nothing ("direct"). An `answer_error` above 0 puts gates on the answer's modes
    (`nn/answer_gates`), with one for each length of up to `gate_modes` modes.
    """

    name: str = ""
    increment_scale: Tensor

    def __init__(
        self,
        signature: OperatorSignature,
        config: Any,
        *,
        predict: Predict = "auto",
        answer_error: float = 0.0,
        gate_modes: int = 1,
    ) -> None:
        super().__init__()
        if predict == "increment" and signature.in_channels != signature.out_channels:
            raise ConfigError(
                f"predict='increment' needs equal input and output fields, the signature has "
                f"{signature.in_channels} and {signature.out_channels}"
            )
        self.signature, self.config = signature, config
        self.increments = signature.evolves if predict == "auto" else predict == "increment"
        self.input_units = Normalizer(signature.in_channels)
        self.output_units = self.input_units if signature.evolves else Normalizer(signature.out_channels)
        self.param_units = Normalizer(signature.num_params) if signature.num_params else None
        self.usual = MeanField(signature.space_dims, signature.out_channels) if predict == "departure" else None
        self.register_buffer("increment_scale", torch.ones(signature.out_channels))
        edges = signature.boundary or ("outflow",) * signature.space_dims
        gates = AnswerGates(signature.out_channels, gate_modes, edges, answer_error) if answer_error else None
        self.answer_gates = gates

    def forward(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """Physical fields `(B, history, *space, in)` -> `(B, *space, out)`, at any resolution.

        `params` `(B, num_params)`; `grid` says where the cells are, equal cells on a box unless given.
        """
        if not torch.compiler.is_compiling():
            self._check(x, params)
        history, params = self.normalized(x, params)
        return self.output_units.denormalize(self.forward_normalized(history, params, grid))

    def forward_normalized(
        self,
        history: Float[Tensor, "batch history *space field"],
        params: Float[Tensor, "batch params"] | None = None,
        grid: Grid | None = None,
    ) -> Float[Tensor, "batch *space out"]:
        """The same map at unit scale, which the loss sees."""
        return self.on_axes(history, params, self.axes(history, grid))

    def on_axes(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The same on axes that are known."""
        return self.completed(self.respond(history, params, axes), history, axes)

    def completed(self, answer: Tensor, history: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The prediction at unit scale that an answer of the network stands for."""
        if self.answer_gates is not None:
            answer = self.answer_gates(answer.movedim(-1, 0), axes).movedim(0, -1)
        if self.increments:
            return history[:, -1] + self.increment_scale * answer
        return answer if self.usual is None else self.usual(axes) + self.increment_scale * answer

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The network at unit scale: `(B, history, *space, in)` -> `(B, *space, out)`."""
        raise NotImplementedError(f"{type(self).__name__} must say how it responds")

    def normalized(self, x: Tensor, params: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Physical inputs and parameters at unit scale."""
        if params is not None and self.param_units is not None:
            params = self.param_units.normalize(params)
        return self.input_units.normalize(x), params

    def axes(self, history: Tensor, grid: Grid | None) -> tuple[Axis, ...]:
        """The axes of the field's grid."""
        boundary = self.signature.boundary or ("outflow",) * self.signature.space_dims
        return axes_of(history.shape[2:-1], grid, [kind == "periodic" for kind in boundary])

    @torch.no_grad()
    def prepare(self, windows: Iterable[Window]) -> None:
        """Set up what depends on data, once, before training: mean field, usual size and wavelengths of an answer."""
        windows = list(windows)
        if not windows:
            return
        self.fit_mean_field(windows)
        if self.increments or self.usual is not None:
            self.fit_scale(windows)
        if self.answer_gates is not None:
            self.answer_gates.fit(
                ((self.wanted(window)[:, step] / self.increment_scale).movedim(-1, 0), axes)
                for window in windows
                for axes in [self.axes(window.inputs, window.grid)]
                for step in range(window.targets.shape[1])
            )

    @torch.no_grad()
    def finish(self, windows: Iterable[Window]) -> None:
        """Set right what depends on the errors that are left, once, after training: the gates on the answers."""
        if self.answer_gates is not None:
            self.answer_gates.refit(map(self._answered, windows), adding=self.increments)

    def _answered(self, window: Window) -> tuple[Tensor, Tensor, Sequence[Axis]]:
        """What the network says along true frames and what it should, `(step, field, batch, *space)`; the axes."""
        steps, axes = window.targets.shape[1], self.axes(window.inputs, window.grid)
        frames = window.inputs if steps == 1 else torch.cat([window.inputs, window.targets], dim=1)
        said = [
            self.respond(*self.normalized(frames[:, step : step + self.signature.history], window.params), axes)
            for step in range(steps)
        ]
        wanted = (self.wanted(window) / self.increment_scale).movedim((1, -1), (0, 1))
        return torch.stack(said).movedim(-1, 1), wanted, axes

    def fit_scale(self, windows: Sequence[Window]) -> None:
        """Keep the usual size of an answer."""
        squares, count = torch.zeros(self.signature.out_channels, dtype=torch.float64), 0
        for window in windows:
            answers = to_float64(self.wanted(window))
            squares += answers.square().flatten(0, -2).sum(0).to(squares)
            count += answers[..., 0].numel()
        if count:
            self.increment_scale.copy_((squares / count).sqrt().clamp_min(1e-8))

    def wanted(self, window: Window) -> Tensor:
        """What the network would have to answer, before `increment_scale`: `(B, steps, *space, out)`."""
        targets = self.output_units.normalize(window.targets)
        if self.increments:
            last = self.output_units.normalize(window.inputs[:, -1:])
            return torch.cat([last, targets], dim=1).diff(dim=1)
        return targets if self.usual is None else targets - self.usual(self.axes(window.inputs, window.grid))

    def fit_mean_field(self, windows: Sequence[Window]) -> None:
        """Keep the mean of all targets, which must lie on one grid; nothing where it is not needed."""
        if self.usual is not None and windows:
            axes = self.axes(windows[0].inputs, windows[0].grid)
            targets = (window.targets.flatten(0, 1) for window in windows)
            self.usual.fit(targets, axes, self.output_units.normalize)

    def save_pretrained(self, folder: Path | str) -> None:
        """Write weights, config, signature and units into a folder that `from_pretrained` reads."""
        document = {
            "name": self.name,
            "config": as_mapping(self.config),
            "signature": as_mapping(self.signature),
        }
        save_bundle(Path(folder), Bundle(tensors={"weights": self.state_dict()}, documents={"model": document}))

    def _check(self, x: Tensor, params: Tensor | None) -> None:
        facts = self.signature
        dims = facts.space_dims + 3
        wanted = f"(batch, {facts.history}, {', '.join('*' * facts.space_dims)}, {facts.in_channels})"
        if x.ndim != dims or x.shape[1] != facts.history or x.shape[-1] != facts.in_channels:
            raise ShapeError(
                f"expected an input of shape {wanted} = (batch, history, *space, fields), got {tuple(x.shape)}"
            )
        if min(x.shape[2:-1]) < MIN_CELLS:
            raise ShapeError(f"expected at least {MIN_CELLS} cells along each axis, got {tuple(x.shape[2:-1])}")
        given = 0 if params is None else params.shape[-1]
        if given != facts.num_params or (params is not None and params.shape != (x.shape[0], given)):
            shape = None if params is None else tuple(params.shape)
            raise ShapeError(f"expected params of shape ({x.shape[0]}, {facts.num_params}), got {shape}")
