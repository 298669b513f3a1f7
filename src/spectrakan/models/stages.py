"""The stages around a network, the same for every model.

    u_next(x) = b(x) + s G[ r(x) ],     r = N(q^age u),     or r = N_1 + gain tanh(N_2) u_last

b is the last frame, the mean training field or nothing, s the residual's standard deviation in the training data, G
the output filter (`nn/output_filter`) and q the decay of the history. With `range_margin` u_next is cut off at the
ends of the training data's range, widened by that share of it.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import torch
from pydantic import Field

from spectrakan.config import settings
from spectrakan.errors import ConfigError
from spectrakan.fields import OperatorSignature, Window
from spectrakan.fields.grid_part import summed
from spectrakan.numerics.quadrature import to_float64

UNLIMITED = 2.0**126
"""Limit of a prediction before it is fitted: finite, because saved weights are, and the same number in every type."""
Predict = Literal["auto", "increment", "mean_field", "direct"]
LEAST_DECAY = 0.3
"""Lower limit of a fitted history decay; found on validation data of compressible flow."""
MARGIN = 0.1
"""Margin where fields evolve; with 0.5 and 1 rare rollouts still decided which weights were kept."""


@settings
class Stages:
    """Settings of the stages around a network, given beside the network's own."""

    predict: Predict = "auto"
    """What the network predicts: the `increment` to the last frame, the departure from the mean training field
    (`mean_field`), the field itself (`direct`), or by the signature (`auto`): increments where the field evolves,
    else departures from the mean field."""
    noise_level: Annotated[float, Field(ge=0)] = 0.01
    """Relative error per mode that the output filter expects of the network: it damps wavelengths in which the
    training data have less; 0: no filter."""
    multiplicative_readout: bool = False
    """Whether the network also gives each field a bounded factor of its own last frame, tanh(c) times a gain that
    starts at zero: equations multiply fields. Only where fields evolve."""
    history_decay: Annotated[float, Field(gt=0, le=1)] | Literal["auto"] = 1.0
    """Factor q by which an input frame is multiplied for each frame of its age; `auto` fits it to the correlation of
    successive increments in the training data."""
    range_margin: Annotated[float, Field(ge=0)] | Literal["auto"] | None = "auto"
    """Share of the training data's range by which predictions may leave it, so that no rollout explodes; `auto`: 0.1
    where fields evolve, no limit where they are steady; None: no limit."""
    ema_decay: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Decay of the exponential moving average of the weights that training validates and keeps; 0: no average."""


def prediction_of(signature: OperatorSignature, stages: Stages) -> Predict:
    """What a network with this signature predicts, with "auto" resolved; contradictions raise `ConfigError`."""
    if stages.predict == "increment" and signature.in_channels != signature.out_channels:
        raise ConfigError(
            f"predict='increment' needs equal input and output fields, the signature has "
            f"{signature.in_channels} and {signature.out_channels}"
        )
    if stages.multiplicative_readout and not signature.evolves:
        raise ConfigError("multiplicative_readout=True needs fields that evolve: a steady output has no last frame")
    if stages.predict != "auto":
        return stages.predict
    return "increment" if signature.evolves else "mean_field"


def margin_of(signature: OperatorSignature, stages: Stages) -> float | None:
    """The margin around the training data's range with "auto" resolved; None: no limit."""
    if stages.range_margin == "auto":
        return MARGIN if signature.evolves else None
    return stages.range_margin


def fitted_decay(windows: Iterable[Window], num_fields: int) -> float:
    """Correlation of the last increment of a window with the next one, the mean over fields, at least `LEAST_DECAY`.

    It is near 1 where the field changes slowly, and small where waves pass within a frame.
    """
    moments = torch.zeros(3, num_fields, dtype=torch.float64)
    for window in windows:
        frames = to_float64(torch.cat([window.inputs[:, -2:], window.targets[:, :1]], dim=1))
        before, after = frames.diff(dim=1).unbind(1)
        pairs = [before * after, before.square(), after.square()]
        moments += summed(torch.stack([pair.flatten(0, -2).sum(0) for pair in pairs]).to(moments), window.grid)
    correlation = moments[0] / (moments[1] * moments[2]).sqrt().clamp_min(1e-300)
    return float(correlation.mean().clamp(LEAST_DECAY, 1.0))
