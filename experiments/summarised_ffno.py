"""F-FNO with SpectraKAN's summary of the state, to tell the summary's worth from the model's.

ffno_channels   each number of the summary is one more channel that is constant in space
ffno_film       the summary, through an MLP, scales and shifts the hidden channels of every layer (FiLM)

The summary is `nn/summary` with mean and spread of the last frame and the parameters, at unit scale by its statistics
over the batches of training, limited as the token's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from spectrakan.config import build_settings
from spectrakan.fields import Grid, OperatorSignature
from spectrakan.models.catalog import known_factory, register_model
from spectrakan.models.ffno import FFNO, FFNOConfig
from spectrakan.models.stages import Stages
from spectrakan.nn.axis import Axis
from spectrakan.nn.conditioning import Conditioning
from spectrakan.nn.embedding import channels_first, channels_last, with_params
from spectrakan.nn.token import LIMIT, NOISE_SHARE, GlobalToken, disturbed, summary_size
from spectrakan.training.presets import SIZES

HIDDEN = 32
"""Width of the MLP before FiLM, as SpectraKAN's token."""


class RunningUnits(nn.Module):
    """Units of a summary by the rule of `GlobalToken`, from averages over all batches so far."""

    moments: Tensor
    batches: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("moments", torch.stack([torch.zeros(size), torch.ones(size), torch.zeros(size)]))
        self.register_buffer("batches", torch.zeros(()))

    @torch.no_grad()
    def learn(self, raw: Tensor, changed: Tensor) -> None:
        """Add a batch of summaries `(batch, size)`, true and of disturbed frames."""
        found = torch.stack([raw.mean(0), raw.square().mean(0), (changed - raw).square().mean(0)])
        self.batches += 1
        self.moments += (found - self.moments) / self.batches

    def forward(self, raw: Tensor) -> Tensor:
        """The summary in its units."""
        mean, square, error = self.moments
        scale = (square - mean.square() + error / NOISE_SHARE**2).clamp_min(1e-12).sqrt()
        found: Tensor = (raw - mean) / scale
        return found


class SummarisedFFNO(nn.Module):
    """F-FNO at unit scale that receives the summary in one of the ways of the file's head."""

    def __init__(self, signature: OperatorSignature, way: Literal["channels", "film"], **chosen: Any) -> None:
        super().__init__()
        size = summary_size("dynamics", signature)
        self.way, self.read = way, GlobalToken(signature, kind="raw", pool="dynamics")
        self.units = RunningUnits(size)
        extra = size - signature.num_params if way == "channels" else 0
        config = build_settings(FFNOConfig, {**SIZES["ffno"][signature.space_dims > 1], **chosen}, where="model")
        inner = replace(signature, num_params=signature.num_params + extra, param_names=())
        self.network = FFNO(inner, config, Stages(noise_level=0.0))
        hidden = config.mlp_ratio * config.width
        self.mlp = nn.Sequential(nn.Linear(size, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN))
        bases = self.network.spectral[0].bases
        self.film = Conditioning(HIDDEN, "film", hidden, config.width, cast(Any, bases), [0] * config.num_layers)

    def forward(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """`(batch, history, *space, in)` -> `(batch, *space, out)` at unit scale."""
        axes = self.network.axes(x, grid)
        raw = self.read.raw_summary(x, params, axes)
        if self.training:
            self.units.learn(
                raw.detach(),
                self.read.raw_summary(disturbed(x.detach(), axes, int(self.units.batches)), params, axes),
            )
        summary = LIMIT * torch.tanh(self.units(raw) / LIMIT)
        if self.way == "channels":
            return self.network._forward(x, summary, axes)
        field = self.network.lift(self.network.located(with_params(channels_first(x), params), axes))
        return channels_last(self.network.readout(self._layers(field, self.mlp(summary), axes), None))

    def _layers(self, field: Tensor, token: Tensor, axes: Sequence[Axis]) -> Tensor:
        shared = self.network.config.share_weights
        for number, condition in enumerate(self.film(token)):
            widen, activation, narrow = cast(nn.Sequential, self.network.feed_forward[number])
            spectral = self.network.spectral[0 if shared else number](field, axes)
            field = field + narrow(activation(condition.applied(widen(spectral))))
        return field


def channels(signature: OperatorSignature, **chosen: Any) -> nn.Module:
    """F-FNO with the summary as channels."""
    return SummarisedFFNO(signature, "channels", **chosen)


def film(signature: OperatorSignature, **chosen: Any) -> nn.Module:
    """F-FNO with FiLM by the summary."""
    return SummarisedFFNO(signature, "film", **chosen)


FACTORIES = {"ffno_channels": channels, "ffno_film": film}


def register_summarised() -> None:
    """Make both known by name in this process."""
    for name, factory in FACTORIES.items():
        if known_factory(name) is None:
            register_model(name, factory)
