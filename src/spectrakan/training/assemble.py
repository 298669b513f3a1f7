"""From settings to a session: data, model and loader, each made from what the settings say and a seed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from spectrakan.data.loader import Loader, LoaderSettings
from spectrakan.data.prepare import Prepared
from spectrakan.data.windows import Starts, Windows
from spectrakan.fields import Window
from spectrakan.models import build_model
from spectrakan.models.operator import Operator
from spectrakan.nn.normalizer import Normalizer
from spectrakan.runs import data_digest
from spectrakan.training.physics import physics_term
from spectrakan.training.runtime import Runtime
from spectrakan.training.session import Session
from spectrakan.training.settings import RunSettings
from spectrakan.training.synced_norm import synchronise_norms
from spectrakan.training.unroll import Objective
from spectrakan.training.validate import validator

PREPARED_WINDOWS = 512
"""Windows that a model with weights to learn sees for its set-up; one without sees all, for that is its training."""

FINISHED_CELLS = 2**19
"""Cells of fields that a trained model sees again to be finished: far less than an epoch."""


def build_session(choices: RunSettings, prepared: Prepared, runtime: Runtime) -> Session:
    """A session at its beginning; the same settings, data and seed give the same bits."""
    windows = training_windows(choices, prepared)
    model = build_operator(choices, prepared, runtime)
    if runtime.world_size > 1:
        synchronise_norms(model)
    learns = any(parameter.requires_grad for parameter in model.parameters())
    count = PREPARED_WINDOWS if learns else len(windows)
    model.prepare(_spread_out(windows, count, choices.training.batch_size, runtime))
    loader = Loader(
        windows,
        LoaderSettings(
            batch_size=choices.training.batch_size,
            seed=choices.runtime.seed,
            rank=runtime.rank,
            world_size=runtime.world_size,
            pin_memory=runtime.device.type == "cuda",
        ),
    )
    check = validator(validation_windows(choices, prepared), choices.training, runtime)
    physics = physics_term(prepared.task, windows) if choices.training.physics_weight else None
    objective = Objective(model, choices.training, physics)
    return Session(objective, loader, choices, runtime, data_digest(prepared.trajectories), check)


def finish_operator(model: Operator, choices: RunSettings, prepared: Prepared, runtime: Runtime) -> None:
    """Show a trained model whole rollouts of the training part once more, unless they were observed in part."""
    if choices.data.observed_fraction < 1.0:
        return
    windows = prepared.windows("train", horizon=prepared.horizon, starts="first")
    count = max(1, FINISHED_CELLS // (prepared.horizon * math.prod(prepared.trajectories.grid.shape)))
    model.finish(_spread_out(windows, count, choices.training.batch_size, runtime))


def training_windows(choices: RunSettings, prepared: Prepared) -> Windows:
    """Windows of the training part; a field observed in part is seen from its first frame only."""
    horizon = 1 if prepared.trajectories.steady else choices.training.horizon
    starts: Starts = "first" if choices.data.observed_fraction < 1.0 else choices.training.starts
    return prepared.windows("train", horizon=horizon, starts=starts)


def validation_windows(choices: RunSettings, prepared: Prepared) -> Windows | None:
    """One window from the start of each validation sample; None where there are none."""
    if not prepared.split.part("validation"):
        return None
    return prepared.windows(
        "validation", horizon=choices.training.validation_frames or prepared.horizon, starts="first"
    )


def build_operator(choices: RunSettings, prepared: Prepared, runtime: Runtime) -> Operator:
    """The model for the data's signature, with the units of the training part."""
    named = dict(choices.model)
    name, variant = named.pop("name"), named.pop("variant")
    signature = prepared.windows("train", starts="first").signature()
    model = build_model(name, signature, variant=variant, **named).to(runtime.device, runtime.dtype)
    if choices.training.normalize:
        _fit(model.input_units, prepared.units.inputs)
        _fit(model.output_units, prepared.units.outputs)
        if model.param_units is not None and prepared.units.params is not None:
            _fit(model.param_units, prepared.units.params)
    return model


def _fit(normalizer: Normalizer, units: Normalizer) -> None:
    normalizer.set(mean=units.mean, scale=units.scale, logarithmic=units.logarithmic)


def _spread_out(windows: Windows, count: int, batch_size: int, runtime: Runtime) -> Iterator[Window]:
    """Up to `count` windows from the first to the last, in batches."""
    count = min(len(windows), count)
    places = torch.linspace(0, len(windows) - 1, count, dtype=torch.float64).round().long().tolist()
    for first in range(0, count, batch_size):
        window = windows.gather(places[first : first + batch_size])
        params = None if window.params is None else window.params.to(runtime.device, runtime.dtype)
        yield Window(
            inputs=window.inputs.to(runtime.device, runtime.dtype),
            targets=window.targets.to(runtime.device, runtime.dtype),
            params=params,
            grid=window.grid,
        )
