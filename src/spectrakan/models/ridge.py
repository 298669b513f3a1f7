"""Ridge regression: the best linear operator on low modes, in closed form. The floor for everything learned.

a = sum_b W_ab c_b(history) + d_a,     u_next(x) = u_usual(x) + sum_a a e_a(x)

c are coefficients of the last `num_frames` frames, and the parameters; e are products of one function an axis:
Fourier on periodic axes, cosine on the others, low modes of all axes jointly. W minimises the squared error of
the training set plus penalty |W|^2 (Hoerl, Kennard 1970), the penalty chosen by leaving out runs of neighbouring
samples (`numerics/ridge`). Modes mean the same at every resolution. u_usual is the last frame where increments are
predicted, else the mean training field: its fine detail (mountains) is more than low modes could carry.
There is nothing to train: W and d are buffers that `prepare` fits, and the model has no parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import settings
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.operator import Operator, Predict
from spectrakan.nn.axis import Axis, AxisTransform, axis_transform
from spectrakan.numerics.fourier import Basis
from spectrakan.numerics.ridge import Moments, best_penalty, ridge_weights
from spectrakan.numerics.sampling import along_axis

Count = Annotated[int, Field(ge=1)]
PENALTIES = tuple(10.0**power for power in range(-9, 2))
"""Candidates, times the mean square of the features summed over samples."""
BLOCKS = 5
"""Runs of neighbouring samples that are left out in turn to choose the penalty."""


@settings
class RidgeConfig:
    """Choices of the linear operator."""

    num_modes: Count = 16
    """Modes along each axis (twice as many cosines), as far as `max_features` allows."""
    num_frames: Count = 2
    """How many of the last frames are seen: more modes are worth more than more frames."""
    max_features: Count = 1024
    """Most coefficients of the input; the modes of large fields are cut to this."""
    penalty: Annotated[float, Field(gt=0)] | Literal["auto"] = "auto"
    """Penalty over the features' mean square, or the one that predicts runs of samples left out best."""
    predict: Predict = "auto"
    """`increment` to the last frame, `departure` from the mean training field, the field itself (`direct`), or by
    the signature: increments where the field evolves, else departures."""


class Ridge(Operator):
    """The linear operator; see the file's equation."""

    name = "ridge"
    config: RidgeConfig
    weights: Tensor
    intercept: Tensor

    def __init__(self, signature: OperatorSignature, config: RidgeConfig) -> None:
        steady = config.predict == "auto" and not signature.evolves
        super().__init__(signature, config, predict="departure" if steady else config.predict)
        self.num_frames = min(config.num_frames, signature.history)
        self.num_modes = affordable_modes(signature, config)
        boundary = signature.boundary or ("outflow",) * signature.space_dims
        self.bases: tuple[Basis, ...] = tuple("fourier" if kind == "periodic" else "cosine" for kind in boundary)
        self.rows = 2 * self.num_modes
        boxes = self.rows**signature.space_dims
        inputs = self.num_frames * signature.in_channels * boxes + signature.num_params
        self.register_buffer("weights", torch.zeros(inputs, signature.out_channels * boxes))
        self.register_buffer("intercept", torch.zeros(signature.out_channels * boxes))

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Coefficients in, coefficients out, and the field they make."""
        coefficients = self.features(history, params, axes) @ self.weights + self.intercept
        field: Tensor = coefficients.unflatten(1, (*[self.rows] * len(axes), -1))
        for place, transform in enumerate(self._transforms(axes, history), start=1):
            resolved = field.narrow(place, 0, transform.synthesis.shape[1])
            field = along_axis(transform.synthesis, resolved, place)
        return field

    def features(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Coefficients of the last frames, and the parameters, `(batch, inputs)`."""
        seen = self._analyse(history[:, -self.num_frames :], axes)
        return seen if params is None else torch.cat([seen, params], dim=1)

    @torch.no_grad()
    def prepare(self, windows: Iterable[Window]) -> None:
        """Fit the mean field, then W and d: one pass for the second moments, in float64, and the closed form."""
        windows = list(windows)
        self.fit_mean_field(windows)
        blocks = self._blocks(windows)
        if not blocks:
            return
        total = blocks[0]
        for block in blocks[1:]:
            total = total.plus(block)
        centre, middle = total.means()
        gram, cross, _ = total.about(centre, middle)
        unit = max(float(gram.diagonal().mean()), torch.finfo(torch.float32).tiny)
        if not isinstance(self.config.penalty, str):
            penalty = unit * self.config.penalty
        elif len(blocks) == 1:
            penalty = unit  # one sample: nothing can be left out, so its mean is the answer
        else:
            penalty = best_penalty(blocks, [unit * candidate for candidate in PENALTIES])
        solved = ridge_weights(gram, cross, penalty)
        self.weights.copy_(solved)
        self.intercept.copy_(middle - centre @ solved)

    def _blocks(self, windows: Sequence[Window]) -> list[Moments]:
        """Second moments of up to five runs of neighbouring samples, in one pass.

        With many windows a run is made of whole windows, with few of samples inside each of them.
        """
        kept: dict[int, Moments] = {}
        whole = len(windows) >= BLOCKS
        for number, (features, targets) in self._examples(windows):
            parts = 1 if whole else min(BLOCKS, len(features))
            pairs = zip(features.tensor_split(parts), targets.tensor_split(parts), strict=True)
            for part, (x, y) in enumerate(pairs):
                block = number * BLOCKS // len(windows) if whole else part
                made = Moments.of(x, y)
                kept[block] = kept[block].plus(made) if block in kept else made
        return [kept[block] for block in sorted(kept)]

    def _examples(self, windows: Sequence[Window]) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
        """The number of each window, with features and target coefficients of each step in it."""
        for number, window in enumerate(windows):
            axes = self.axes(window.inputs, window.grid)
            inputs, params = self.normalized(window.inputs, window.params)
            targets = self.output_units.normalize(window.targets)
            frames = torch.cat([inputs, targets], dim=1) if self.signature.evolves else inputs
            for step in range(targets.shape[1] if self.signature.evolves else 1):
                history = frames[:, step : step + self.signature.history]
                wanted = targets[:, step] - self.completed(torch.zeros_like(targets[:, step]), history, axes)
                wanted = self._analyse(wanted[:, None], axes)
                yield number, (self.features(history, params, axes), wanted)

    def _analyse(self, frames: Tensor, axes: Sequence[Axis]) -> Tensor:
        """Coefficients `(batch, *rows, frame, field)`, flattened; modes that the grid does not resolve are zero."""
        frames = frames.movedim(1, -2)
        for place, transform in enumerate(self._transforms(axes, frames), start=1):
            frames = along_axis(transform.analysis, frames, place)
            missing = self.rows - frames.shape[place]
            empty = frames.new_zeros(*frames.shape[:place], missing, *frames.shape[place + 1 :])
            frames = torch.cat([frames, empty], dim=place)
        return frames.flatten(1)

    def _transforms(self, axes: Sequence[Axis], like: Tensor) -> list[AxisTransform]:
        return [
            axis_transform(axis, basis, self.num_modes, like) for axis, basis in zip(axes, self.bases, strict=True)
        ]


def affordable_modes(signature: OperatorSignature, config: RidgeConfig) -> int:
    """The most modes along each axis, up to the config's, that keep the number of features within its limit."""
    channels = min(config.num_frames, signature.history) * signature.in_channels
    modes = config.num_modes
    while modes > 1 and channels * (2 * modes) ** signature.space_dims > config.max_features:
        modes -= 1
    return modes
