"""What every operator is: a network at unit scale between stages, with physical units in and out."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError, ShapeError, UnfittedWarning
from spectrakan.fields import Grid, GridPart, OperatorSignature, SpaceGroup, Window
from spectrakan.fields.grid_part import summed
from spectrakan.models.stages import UNLIMITED, Stages, fitted_decay, margin_of, prediction_of
from spectrakan.nn.axis import Axis, axes_of
from spectrakan.nn.mean_field import MeanField
from spectrakan.nn.normalizer import Normalizer
from spectrakan.nn.output_filter import OutputFilter
from spectrakan.numerics.quadrature import to_float64
from spectrakan.storage import Bundle, save_bundle

MIN_CELLS = 4
FILTER_MODES = {1: 24, 2: 16, 3: 16}
"""Modes of the output filter along each axis, by the number of axes."""
FIT_VALUES = 2**22
"""Numbers that `fit_statistics` and `calibrate` process at a time."""


class Operator(nn.Module):
    """A map from a history of fields to the next field: (B, history, *space, in) -> (B, *space, out).

    `forward` takes and gives physical units; `forward_normalized`, which the loss uses, is the map at unit scale.
    A subclass has a `name` and a method `_forward`, the network itself, with `network_out_channels` outputs; the
    stages around it are settings (`models/stages`). `fit_statistics` sets up everything that depends on data before
    training, `calibrate` what depends on the trained network's errors.
    """

    name: str = ""
    cuts_space: bool = False
    """Whether fields may be cut among processes (`fields/grid_part`)."""
    residual_scale: Tensor
    frame_weights: Tensor
    limits: Tensor | None
    fitted: Tensor

    def __init__(self, signature: OperatorSignature, config: Any, stages: Stages | None = None) -> None:
        super().__init__()
        self.signature, self.config, self.stages = signature, config, stages or Stages()
        self.predict = prediction_of(signature, self.stages)
        fields, dims, decay = signature.out_channels, signature.space_dims, self.stages.history_decay
        self.boundary: tuple[str, ...] = signature.boundary or ("outflow",) * dims  # unknown ones count as open
        # Channels that the network itself gives: each field once, or twice with a multiplicative readout.
        self.network_out_channels = fields * (2 if self.stages.multiplicative_readout else 1)
        self.input_units = Normalizer(signature.in_channels)
        self.output_units = self.input_units if signature.evolves else Normalizer(fields)
        self.param_units = Normalizer(signature.num_params) if signature.num_params else None
        self.mean_field = MeanField(dims, fields) if self.predict == "mean_field" else None
        noise, modes = self.stages.noise_level, FILTER_MODES[dims]
        self.output_filter = OutputFilter(fields, modes, self.boundary, noise) if noise else None
        self.product_gain = nn.Parameter(torch.zeros(fields)) if self.stages.multiplicative_readout else None
        self.register_buffer("residual_scale", torch.ones(fields))
        self.register_buffer("frame_weights", torch.ones(signature.history))
        ends = torch.tensor([[-UNLIMITED], [UNLIMITED]]).repeat(1, fields)
        self._margin = margin_of(signature, self.stages)
        self.register_buffer("limits", None if self._margin is None else ends)
        self.register_buffer("fitted", torch.zeros((), dtype=torch.bool))
        self._warns = True
        self._decays = decay != 1.0 and signature.history > 1
        if self._decays and not isinstance(decay, str):
            self._set_decay(decay)

    def forward(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """Physical fields `(B, history, *space, in)` -> `(B, *space, out)`, at any resolution.

        `params` `(B, num_params)`; `grid` gives the cells, equal ones on a box by default.
        """
        if not torch.compiler.is_compiling():
            self._check(x, params)
            if self._warns:
                self._warns = False
                warnings.warn(
                    f"this {self.name or type(self).__name__} was never fitted to data, so its units are 1: call "
                    "model.fit_statistics(inputs, targets) before training, or load a trained model",
                    UnfittedWarning,
                    stacklevel=3,
                )
        history, params = self.normalized(x, params)
        return self.output_units.denormalize(self.forward_normalized(history, params, grid))

    def forward_normalized(
        self,
        history: Float[Tensor, "batch history *space field"],
        params: Float[Tensor, "batch params"] | None = None,
        grid: Grid | None = None,
    ) -> Float[Tensor, "batch *space out"]:
        """The same map at unit scale, which the loss uses."""
        axes = self.axes(history, grid)
        return self.postprocess(self._forward(self.decayed(history), params, axes), history, axes)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """The network at unit scale: `(B, history, *space, in)` -> `(B, *space, network_out_channels)`."""
        raise NotImplementedError(f"{type(self).__name__} must define _forward")

    def postprocess(self, output: Tensor, history: Tensor, axes: Sequence[Axis]) -> Tensor:
        """The prediction at unit scale from the network's output: product, filter, the last or mean field, limits."""
        residual = self.residual(output, history)
        if self.output_filter is not None:
            residual = self.output_filter(residual.movedim(-1, 0), axes).movedim(0, -1)
        if self.predict != "direct":
            reference = history[:, -1] if self.mean_field is None else self.mean_field(axes)
            residual = reference + self.residual_scale * residual
        return residual if self.limits is None else residual.clamp(*self.limits)

    def residual(self, output: Tensor, history: Tensor) -> Tensor:
        """The residual before the filter: the output, or N_1 + gain tanh(N_2) u_last of its two halves."""
        if self.product_gain is None:
            return output
        added, factor = output.chunk(2, dim=-1)
        # Bounded, because an unbounded product diverges in rollouts.
        return added + self.product_gain * factor.tanh() * history[:, -1]

    def normalized(self, x: Tensor, params: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Physical inputs and parameters at unit scale."""
        if params is not None and self.param_units is not None:
            params = self.param_units.normalize(params)
        return self.input_units.normalize(x), params

    def network_inputs(self, x: Tensor, params: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Physical inputs and parameters, checked, as the network receives them."""
        self._check(x, params)
        history, params = self.normalized(x, params)
        return self.decayed(history), params

    def decayed(self, history: Tensor) -> Tensor:
        """The history as the network receives it, each frame times q^age."""
        if not self._decays:
            return history
        return history * self.frame_weights.view(-1, *[1] * (history.ndim - 2))

    def axes(self, history: Tensor, grid: Grid | None) -> tuple[Axis, ...]:
        """The axes of the field's grid."""
        if isinstance(grid, GridPart) and not self.cuts_space:
            raise ConfigError(f"fields of {self.name or type(self).__name__} cannot be cut among processes")
        return axes_of(history.shape[2:-1], grid, [kind == "periodic" for kind in self.boundary])

    def target_residual(self, window: Window) -> Tensor:
        """What the network should give, before `residual_scale`: `(B, steps, *space, out)` at unit scale."""
        targets = self.output_units.normalize(window.targets)
        if self.predict == "increment":
            last = self.output_units.normalize(window.inputs[:, -1:])
            return torch.cat([last, targets], dim=1).diff(dim=1)
        if self.mean_field is not None:
            targets = targets - self.mean_field(self.axes(window.inputs, window.grid))
        return targets

    def fit_statistics(
        self, inputs: Tensor, targets: Tensor, params: Tensor | None = None, grid: Grid | None = None
    ) -> None:
        """Set up everything that depends on data, once, before training, from training data in physical units.

        `inputs` `(N, history, *space, in)`, `targets` `(N, steps, *space, out)` or `(N, *space, out)`, `params`
        `(N, num_params)`. Fits units, mean field, residual scale, output filter, history decay and spline grids.

        >>> from spectrakan.models import build_model
        >>> model = build_model("fno", OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1))
        >>> frames = torch.linspace(280.0, 300.0, 96).view(3, 2, 16, 1)
        >>> model.fit_statistics(frames[:, :1], frames[:, 1:])
        >>> float(model.input_units.mean)
        290.0
        """
        self.fit_windows(self._windows(inputs, targets, params, grid))

    @torch.no_grad()
    def fit_windows(self, windows: Iterable[Window], *, units: bool = True) -> None:
        """`fit_statistics` on windows, which are iterated several times; `units=False` keeps the present units."""
        windows = list(windows) if isinstance(windows, Iterator) else windows
        first = next(iter(windows), None)
        if first is None:
            raise ConfigError("a model is fitted to at least one window of training data, got none")
        if units:
            self._fit_units(windows, first.grid.space if isinstance(first.grid, GridPart) else None)
        if self.mean_field is not None:
            axes = self.axes(first.inputs, first.grid)
            self.mean_field.fit((w.targets.flatten(0, 1) for w in windows), axes, self.output_units.normalize)
        if self.predict != "direct":
            self._fit_residual_scale(windows)
        if self.limits is not None:
            self._fit_limits(self.limits, windows)
        if self.output_filter is not None:
            self.output_filter.fit(
                ((self.target_residual(w)[:, step] / self.residual_scale).movedim(-1, 0), self.axes(w.inputs, w.grid))
                for w in windows
                for step in range(w.targets.shape[1])
            )
        if self._decays and self.stages.history_decay == "auto" and self.signature.evolves:
            self._set_decay(fitted_decay(windows, self.signature.in_channels))
        self._fit_network(windows)
        self.fitted.fill_(True)
        self._warns = False

    def _fit_network(self, windows: Iterable[Window]) -> None:
        """What the network itself fits to data; nothing by default."""

    def calibrate(
        self, inputs: Tensor, targets: Tensor, params: Tensor | None = None, grid: Grid | None = None
    ) -> None:
        """Refit, once, after training, what depends on the network's remaining errors: the output filter.

        Arguments as of `fit_statistics`; targets of several steps also show how errors add up.
        """
        self.calibrate_windows(self._windows(inputs, targets, params, grid))

    @torch.no_grad()
    def calibrate_windows(self, windows: Iterable[Window]) -> None:
        """`calibrate` on windows, which are iterated once."""
        if self.output_filter is None:
            return
        training = self.training
        self.eval()
        self.output_filter.refit(map(self._residuals, windows), adding=self.predict == "increment")
        self.train(training)

    def examples(self, window: Window) -> Iterator[tuple[Tensor, Tensor | None, Tensor]]:
        """For each step of a window: true history and parameters at unit scale, and the residual in its scale."""
        inputs, params = self.normalized(window.inputs, window.params)
        evolves, residual = self.signature.evolves, self.target_residual(window) / self.residual_scale
        frames = torch.cat([inputs, self.output_units.normalize(window.targets)], dim=1) if evolves else inputs
        for step in range(residual.shape[1] if evolves else 1):
            yield frames[:, step : step + self.signature.history], params, residual[:, step]

    def save_pretrained(self, folder: Path | str) -> None:
        """Write weights, settings, signature and units into a folder that `from_pretrained` reads."""
        bundle = Bundle(tensors={"weights": self.state_dict()}, documents={"model": describe_model(self)})
        save_bundle(Path(folder), bundle)

    def push_to_hub(self, repo_id: str, *, record: Mapping[str, Any] | None = None, **options: Any) -> str:
        """Put the files of `save_pretrained` and a card into a repository of the Hugging Face Hub (extra `hub`).

        The card's scores are those of `record`, the record of a run (`run.record`); `options` are `commit_message`,
        `private`, `token`, `branch` and `create_pr`. Gives the commit's address.
        """
        from spectrakan.models.hub import push

        return push(self, repo_id, record, **options)

    def _residuals(self, window: Window) -> tuple[Tensor, Tensor, Sequence[Axis]]:
        """Residuals of the network along true frames and the true ones, `(step, field, batch, *space)`; the axes."""
        axes, given, true = self.axes(window.inputs, window.grid), [], []
        for history, params, residual in self.examples(window):
            given.append(self.residual(self._forward(self.decayed(history), params, axes), history))
            true.append(residual)
        return torch.stack(given).movedim(-1, 1), torch.stack(true).movedim(-1, 1), axes

    def _fit_units(self, windows: Iterable[Window], space: SpaceGroup | None) -> None:
        if self.signature.evolves:
            self.input_units.fit((part for w in windows for part in (w.inputs, w.targets)), space)
        else:
            self.input_units.fit((w.inputs for w in windows), space)
            self.output_units.fit((w.targets for w in windows), space)
        if self.param_units is not None:
            self.param_units.fit(w.params for w in windows if w.params is not None)

    def _fit_residual_scale(self, windows: Iterable[Window]) -> None:
        squares = torch.zeros(self.signature.out_channels, dtype=torch.float64)
        count = torch.zeros_like(squares[0])
        for window in windows:
            residual = to_float64(self.target_residual(window))
            squares += summed(residual.square().flatten(0, -2).sum(0).cpu(), window.grid)
            count += summed(torch.full_like(count, residual[..., 0].numel()), window.grid)
        self.residual_scale.copy_((squares / count).sqrt().clamp_min(1e-8))

    def _fit_limits(self, limits: Tensor, windows: Iterable[Window]) -> None:
        found = torch.full_like(limits, -torch.inf)  # of the least with its sign changed, and of the largest
        for window in windows:
            targets = self.output_units.normalize(window.targets).flatten(0, -2)
            ends = torch.stack([-targets.amin(0), targets.amax(0)])
            ends = window.grid.space.largest(ends) if isinstance(window.grid, GridPart) else ends
            found = torch.maximum(found, ends)
        low, high = found + cast(float, self._margin) * found.sum(0)
        limits.copy_(torch.stack([-low, high]))

    def _set_decay(self, decay: float) -> None:
        ages = torch.arange(self.signature.history - 1, -1, -1, device=self.frame_weights.device)
        self.frame_weights.copy_(decay**ages)

    def _windows(self, inputs: Tensor, targets: Tensor, params: Tensor | None, grid: Grid | None) -> list[Window]:
        """The samples in windows of bounded size."""
        self._check(inputs, params)
        if isinstance(targets, Tensor) and targets.ndim == inputs.ndim - 1:
            targets = targets.unsqueeze(1)
        _check_numbers("targets", targets, self.residual_scale)
        space, fields = inputs.shape[2:-1], self.signature.out_channels
        if targets.shape != (len(inputs), *targets.shape[1:2], *space, fields):
            raise ShapeError(
                f"expected targets of shape ({len(inputs)}, steps, {', '.join(map(str, space))}, {fields}), "
                f"got {tuple(targets.shape)}"
            )
        size = max(1, FIT_VALUES // (inputs[0].numel() + targets[0].numel()))
        known = [None] * len(inputs) if params is None else params.split(size)
        return [
            Window(x, y, p, grid) for x, y, p in zip(inputs.split(size), targets.split(size), known, strict=False)
        ]

    def _check(self, x: Tensor, params: Tensor | None) -> None:
        signature = self.signature
        expected = f"(batch, {signature.history}, {', '.join('*' * signature.space_dims)}, {signature.in_channels})"
        _check_numbers("an input", x, self.residual_scale)
        wrong = x.ndim != signature.space_dims + 3 or x.shape[1] != signature.history
        if wrong or x.shape[-1] != signature.in_channels:
            raise ShapeError(
                f"expected an input of shape {expected} = (batch, history, *space, fields), got {tuple(x.shape)}"
            )
        if min(x.shape[2:-1]) < MIN_CELLS:
            raise ShapeError(f"expected at least {MIN_CELLS} cells along each axis, got {tuple(x.shape[2:-1])}")
        if not len(x):
            raise ShapeError(f"expected at least one sample, got an input of shape {tuple(x.shape)}")
        if params is not None:
            _check_numbers("params", params, self.residual_scale)
        given = None if params is None else tuple(params.shape)
        if given != ((len(x), signature.num_params) if signature.num_params else None):
            raise ShapeError(f"expected params of shape ({len(x)}, {signature.num_params}), got {given}")

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        super()._load_from_state_dict(state, prefix, *rest)
        fitted = state.get(f"{prefix}fitted")
        self._warns = self._warns and not (fitted is not None and bool(fitted))


def describe_model(model: Operator) -> dict[str, Any]:
    """What `from_pretrained` needs beside the weights."""
    parts = {"config": model.config, "stages": model.stages, "signature": model.signature}
    return {"name": model.name, **{key: as_mapping(part) for key, part in parts.items()}}


def _check_numbers(what: str, values: object, like: Tensor) -> None:
    """Refuse what is no tensor of real numbers of the model's precision, and say how to convert it."""
    if not isinstance(values, Tensor):
        raise ShapeError(
            f"expected {what} as a torch tensor, got {type(values).__name__}; use torch.from_numpy(array)"
        )
    if not values.is_floating_point():
        raise ShapeError(f"expected {what} of real numbers, got {values.dtype}; convert it with .to({like.dtype})")
    if values.element_size() > like.element_size():
        raise ShapeError(
            f"expected {what} of {like.dtype}, the type of the model, got {values.dtype}; convert it with "
            f".to({like.dtype}), or the model with model.to({values.dtype})"
        )
