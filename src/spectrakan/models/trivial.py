"""Trivial baselines, which are not trained: persistence, climatology and ridge regression.

persistence   u_next(x) = u_last(x), or where the output is no next frame of the input the mean of the output's units
climatology   u_next(x) = mean over samples and frames of u(x), whatever the input

Both are the stages around a network that gives zero (`models/stages`): increments of zero, departures of zero from
the mean field. There is nothing to filter. Ridge regression is the best linear operator on low modes, in closed form:

a = sum_b W_ab c_b(history) + d_a,     u_next(x) = b(x) + s sum_a a e_a(x)

c are coefficients of the last two frames, and the parameters; e are products of one function an axis:
Fourier on periodic axes, cosine on the others, low modes of all axes jointly. W minimises the squared error of
the training set plus penalty |W|^2 (Hoerl, Kennard 1970), the penalty chosen by leaving out runs of neighbouring
samples: neighbours in time are correlated, so that leaving out single ones would favour fits that only interpolate
in time. Modes mean the same at every resolution. b is the last frame where increments are
predicted, else the mean training field (`models/stages`), whose fine detail (mountains) exceeds low modes.
There is nothing to train: W and d are buffers that `fit_windows` fits, and the model has no parameters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature, Window
from spectrakan.models.operator import Operator
from spectrakan.models.stages import Predict, Stages, prediction_of
from spectrakan.nn.axis import Axis, axis_transforms
from spectrakan.numerics.fourier import Basis
from spectrakan.numerics.quadrature import to_float64
from spectrakan.numerics.resample import along_axis


@settings
class TrivialConfig:
    """There is nothing to set."""


class _Zero(Operator):
    """A network that gives zero."""

    config: TrivialConfig

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Zero everywhere."""
        return history.new_zeros(history.shape[0], *history.shape[2:-1], self.network_out_channels)


class Persistence(_Zero):
    """The last frame; see the file's head."""

    name = "persistence"

    def __init__(self, signature: OperatorSignature, config: TrivialConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, fixed(stages, "increment" if signature.evolves else "direct", self.name))
        if signature.evolves:  # nothing depends on data
            self.fitted.fill_(True)
            self._warns = False


class Climatology(_Zero):
    """The mean field; see the file's head."""

    name = "climatology"

    def __init__(self, signature: OperatorSignature, config: TrivialConfig, stages: Stages | None = None) -> None:
        super().__init__(signature, config, fixed(stages, "mean_field", self.name))


def fixed(stages: Stages | None, predict: Predict, name: str) -> Stages:
    """The stages of a baseline that allows one kind of prediction, without products and without a filter."""
    given = stages or Stages()
    if given.predict not in ("auto", predict):
        raise ConfigError(f"{name} has predict='{predict}' here, got predict='{given.predict}'; leave it out")
    if given.multiplicative_readout:
        raise ConfigError(f"{name} has no readout: leave out multiplicative_readout")
    return replace(given, predict=predict, noise_level=0.0)


PENALTIES = tuple(10.0**power for power in range(-9, 2))
"""Candidates, times the mean square of the features summed over samples."""
FRAMES = 2
"""How many of the last frames are read: more modes help more than more frames."""
MOST_FEATURES = 1024
"""Most coefficients of the input; the modes of large fields are cut to this."""
BLOCKS = 5
"""Runs of neighbouring samples that are left out in turn to choose the penalty."""
Moments = tuple[Tensor, Tensor, Tensor]
"""Sums over samples of Z^T Z, Z^T Y and |Y|², with Z = [X, 1] features and a one behind them."""


@settings
class RidgeConfig:
    """Settings of the linear operator."""

    num_modes: Count = 16
    """Modes along each axis (twice as many cosines), as far as `MOST_FEATURES` allows."""
    penalty: Annotated[float, Field(gt=0)] | Literal["auto"] = "auto"
    """Penalty over the features' mean square, or the one that predicts runs of samples left out best."""


class Ridge(Operator):
    """The linear operator; see the file's equation."""

    name = "ridge"
    config: RidgeConfig
    weights: Tensor
    intercept: Tensor

    def __init__(self, signature: OperatorSignature, config: RidgeConfig, stages: Stages | None = None) -> None:
        predict = prediction_of(signature, stages or Stages())
        super().__init__(signature, config, fixed(stages, predict, self.name))
        self.num_frames = min(FRAMES, signature.history)
        channels, modes = self.num_frames * signature.in_channels, config.num_modes
        while modes > 1 and channels * (2 * modes) ** signature.space_dims > MOST_FEATURES:
            modes -= 1
        self.num_modes = modes
        self.bases: tuple[Basis, ...] = tuple("fourier" if kind == "periodic" else "cosine" for kind in self.boundary)
        self.rows = 2 * self.num_modes
        boxes = self.rows**signature.space_dims
        inputs = channels * boxes + signature.num_params
        self.register_buffer("weights", torch.zeros(inputs, signature.out_channels * boxes))
        self.register_buffer("intercept", torch.zeros(signature.out_channels * boxes))

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Coefficients in, coefficients out, and their field."""
        coefficients = self.features(history, params, axes) @ self.weights + self.intercept
        field: Tensor = coefficients.unflatten(1, (*[self.rows] * len(axes), -1))
        for dim, transform in enumerate(axis_transforms(axes, self.bases, self.num_modes, history), start=1):
            resolved = field.narrow(dim, 0, transform.synthesis.shape[1])
            field = along_axis(transform.synthesis, resolved, dim)
        return field

    def features(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Coefficients of the last frames, and the parameters, `(batch, inputs)`."""
        frames = self._analyse(history[:, -self.num_frames :], axes)
        return frames if params is None else torch.cat([frames, params], dim=1)

    def _fit_network(self, windows: Iterable[Window]) -> None:
        """W and d: one pass for the second moments, in float64, and the closed form."""
        blocks = self._blocks(windows, sum(1 for _ in windows))
        total = reduce(_sum, blocks)
        gram = total[0]
        unit = float((gram.diagonal() - gram[-1].square() / gram[-1, -1])[:-1].mean())
        unit = max(unit, torch.finfo(torch.float32).tiny)
        if not isinstance(self.config.penalty, str):
            penalty = unit * self.config.penalty
        elif len(blocks) == 1:
            penalty = unit  # one sample: nothing can be left out, so its mean is the prediction
        else:
            penalty = best_penalty(blocks, [unit * candidate for candidate in PENALTIES])
        solved = ridge_weights(total, penalty)
        self.weights.copy_(solved[:-1])
        self.intercept.copy_(solved[-1])

    def _blocks(self, windows: Iterable[Window], count: int) -> list[Moments]:
        """Second moments of up to five runs of neighbouring samples, in one pass over `count` windows.

        With many windows a run consists of whole windows, with few of samples inside each of them.
        """
        blocks: dict[int, Moments] = {}
        whole = count >= BLOCKS
        for number, window in enumerate(windows):
            axes = self.axes(window.inputs, window.grid)
            for history, params, residual in self.examples(window):
                features = self.features(self.decayed(history), params, axes)
                targets = self._analyse(residual[:, None], axes)
                parts = 1 if whole else min(BLOCKS, len(features))
                pairs = zip(features.tensor_split(parts), targets.tensor_split(parts), strict=True)
                for part, (x, y) in enumerate(pairs):
                    block, moments = number * BLOCKS // count if whole else part, moments_of(x, y)
                    blocks[block] = _sum(blocks[block], moments) if block in blocks else moments
        return [blocks[block] for block in sorted(blocks)]

    def _analyse(self, frames: Tensor, axes: Sequence[Axis]) -> Tensor:
        """Coefficients `(batch, *rows, frame, field)`, flattened; modes that the grid does not resolve are zero."""
        frames = frames.movedim(1, -2)
        for dim, transform in enumerate(axis_transforms(axes, self.bases, self.num_modes, frames), start=1):
            frames = along_axis(transform.analysis, frames, dim)
            missing = self.rows - frames.shape[dim]
            empty = frames.new_zeros(*frames.shape[:dim], missing, *frames.shape[dim + 1 :])
            frames = torch.cat([frames, empty], dim=dim)
        return frames.flatten(1)


def moments_of(features: Tensor, targets: Tensor) -> Moments:
    """The moments of samples `(N, p)` and `(N, q)`, in float64."""
    y = to_float64(targets)
    z = torch.nn.functional.pad(to_float64(features), (0, 1), value=1.0)
    return z.T @ z, z.T @ y, y.square().sum()


def _sum(first: Moments, second: Moments, sign: int = 1) -> Moments:
    return first[0] + sign * second[0], first[1] + sign * second[1], first[2] + sign * second[2]


def ridge_weights(moments: Moments, penalty: float) -> Tensor:
    """(Z^T Z + l I)^{-1} Z^T Y for one penalty l > 0, or rounding; the intercept, the last row, is free of it."""
    gram, cross, _ = moments
    # Large enough for the pivot of the intercept, on every processor.
    rounding = 256 * len(gram) * torch.finfo(gram.dtype).eps * float(gram.diagonal().max())
    free = torch.full_like(gram[0], max(penalty, rounding))
    free[-1] = 0.0
    return torch.cholesky_solve(cross, torch.linalg.cholesky(gram + free.diag()))


def best_penalty(blocks: Sequence[Moments], penalties: Sequence[float]) -> float:
    """The penalty whose fits to all blocks but one predict the one left out best, summed over blocks."""
    total = reduce(_sum, blocks)
    rests = [_sum(total, block, sign=-1) for block in blocks]

    def left_out(penalty: float) -> float:
        fits = [ridge_weights(rest, penalty) for rest in rests]
        pairs = zip(blocks, fits, strict=True)
        return sum(float(b[2] + ((b[0] @ weights - 2 * b[1]) * weights).sum()) for b, weights in pairs)

    return min(penalties, key=left_out)
