"""From settings to a session: data, model and loader, each made from the settings and a seed."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import nn

from spectrakan.data.loader import Loader
from spectrakan.data.prepare import Prepared
from spectrakan.data.windows import Windows
from spectrakan.errors import ConfigError
from spectrakan.fields import Window
from spectrakan.fields.grid_part import summed, whole_of
from spectrakan.models import build_model, from_pretrained, wrap_module
from spectrakan.models.operator import Operator, describe_model
from spectrakan.models.rollout import rollout
from spectrakan.numerics.quadrature import to_float64
from spectrakan.runs import data_digest
from spectrakan.runs.folder import changes
from spectrakan.training.objective import Objective
from spectrakan.training.runtime import Runtime, synchronise_norms
from spectrakan.training.session import Session
from spectrakan.training.settings import RunSettings

STATISTICS_WINDOWS = 512
"""Windows that statistics of a model with weights come from; one without weights takes all: that is its training."""
STATISTICS_BATCH = 4
"""Windows that are taken at a time for statistics: a fixed number, so that they do not depend on the batch size."""
CALIBRATION_CELLS = 2**19
"""Cells of fields that a trained model is calibrated on: far less than an epoch."""


def build_session(
    config: RunSettings,
    prepared: Prepared,
    runtime: Runtime,
    module: nn.Module | None = None,
    *,
    processes: int | None = None,
) -> Session:
    """A session at its beginning; the same settings, data and seed give the same bits.

    `processes` is how many the run had before; another number now shares out the same total batch.
    """
    if runtime.space is not None and config.runtime.compile:
        raise ConfigError("runtime.compile=true cannot be used with runtime.space_parallel above 1")
    windows = training_windows(config, prepared)
    model = build_operator(config, prepared, runtime, module)
    if runtime.world_size > 1:
        synchronise_norms(model)
    if config.training.init_from is None:
        learns = any(parameter.requires_grad for parameter in model.parameters())
        count = STATISTICS_WINDOWS if learns else len(windows)
        model.fit_windows(spread_out(windows, count, runtime))
    together = config.training.batch_size * (processes or runtime.data_size)
    if together % runtime.data_size:
        raise ConfigError(
            f"the run takes {together} windows a step in all, which {runtime.data_size} processes cannot share "
            "equally; continue with a number of processes that divides it"
        )
    loader = Loader(
        windows,
        together // runtime.data_size,
        config.runtime.seed,
        rank=runtime.data_rank,
        world_size=runtime.data_size,
        pin_memory=runtime.device.type == "cuda",
    )
    digest, check = data_digest(prepared.trajectories), validator(config, prepared, runtime)
    return Session(Objective(model, config.training), loader, config, runtime, digest, check)


def calibrate_operator(model: Operator, config: RunSettings, prepared: Prepared, runtime: Runtime) -> None:
    """Calibrate a trained model on whole rollouts of the training part."""
    data = prepared.parts["train"].trajectories
    horizon = min(prepared.horizon, 1 if data.steady else len(data.times) - prepared.history)
    at_stored_step = replace(prepared, config=replace(prepared.config, strides=(1,)))
    windows = at_stored_step.windows("train", horizon=horizon, starts="first")
    count = max(1, CALIBRATION_CELLS // (horizon * math.prod(whole_of(data.grid).shape)))
    model.calibrate_windows(spread_out(windows, count, runtime))


def training_windows(config: RunSettings, prepared: Prepared) -> Windows:
    """Windows of the training part."""
    if prepared.trajectories.steady and config.training.horizon > 1:
        raise ConfigError(
            f"a steady problem has one frame, got training.horizon={config.training.horizon}; set it to 1"
        )
    return prepared.windows("train", horizon=config.training.horizon)


def build_operator(
    config: RunSettings, prepared: Prepared, runtime: Runtime, module: nn.Module | None = None
) -> Operator:
    """The model for the data's signature; a user's module is wrapped, `init_from` gives weights and units."""
    named = dict(config.model)
    name, variant = named.pop("name"), named.pop("variant")
    signature = prepared.signature()
    if module is not None:
        return wrap_module(module, signature, **named).to(runtime.device, runtime.dtype)
    if name == "module":
        raise ConfigError(
            "this run was started with a module of your own; hand it in: sk.resume(folder, model=module)"
        )
    model = build_model(name, signature, variant=variant, **named)
    if config.training.init_from is not None:
        source = from_pretrained(config.training.init_from)
        there, here = map(describe_model, (source, model))
        if source.state_dict().keys() == model.state_dict().keys():  # stages may then differ in their settings
            there["stages"] = here["stages"]
        if differing := changes(there, here):
            raise ConfigError(
                "training.init_from holds another model (its settings -> those of this run): "
                f"{'; '.join(differing)}; build the same one, or leave init_from out"
            )
        model.load_state_dict(source.state_dict())
    return model.to(runtime.device, runtime.dtype)


def spread_out(windows: Windows, count: int, runtime: Runtime) -> Iterator[Window]:
    """Up to `count` windows from the first to the last, in batches."""
    count = min(len(windows), count)
    numbers = torch.linspace(0, len(windows) - 1, count, dtype=torch.float64).round().long().tolist()
    for first in range(0, count, STATISTICS_BATCH):
        yield runtime.move(windows.gather(numbers[first : first + STATISTICS_BATCH]))


def validator(config: RunSettings, prepared: Prepared, runtime: Runtime) -> Callable[[Operator], float | None]:
    """The error by which the best weights are chosen: of one rollout from the start of each validation sample.

    Mean over samples and fields of ||p - t|| / ||t||, norms over all frames and cells, in physical units. Processes
    share the samples; a rollout that is not finite makes the error infinite. None where there are no such samples.
    """
    if not prepared.parts["validation"].samples:
        return lambda model: None
    windows = prepared.windows("validation", horizon=prepared.horizon, starts="first")
    batch = config.training.batch_size

    @torch.no_grad()
    def validate(model: Operator) -> float:
        total, mine = 0.0, range(runtime.data_rank, len(windows), runtime.data_size)
        for first in range(0, len(mine), batch):
            window = runtime.move(windows.gather(mine[first : first + batch]))
            inputs, targets, params = window.inputs, window.targets, window.params
            if model.signature.evolves:
                pred = rollout(model, inputs, targets.shape[1], params, window.grid)
            else:
                pred = model(inputs, params, window.grid)[:, None]
            # In float64: squares of fields of 1e-25 or 1e20 are nothing or infinite in float32.
            sums = (to_float64(v).square().flatten(1, -2).sum(1) for v in (pred - targets, targets))
            error, size = (summed(part, window.grid).sqrt() for part in sums)
            ratio = error / size.clamp_min(torch.finfo(size.dtype).tiny)
            # A field that is zero throughout has no relative error; its absolute one stands in.
            total += float(torch.where(size > 0, ratio, error).mean(-1).sum())
        mean = runtime.sum((total,))[0] / (runtime.parts * len(windows))
        return mean if math.isfinite(mean) else math.inf

    return validate
