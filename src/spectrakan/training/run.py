"""A whole run: data, training, the test at the end and the record; and how a run is continued."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from spectrakan.checkpoint import Checkpoint, load_best, load_newest, require_same_run, save_best
from spectrakan.config import as_mapping, as_overrides
from spectrakan.data.files import write_dataset
from spectrakan.data.prepare import Prepared, prepare
from spectrakan.errors import ConfigError, require_package
from spectrakan.evaluation import EvaluationSettings, evaluate
from spectrakan.fields import Trajectories
from spectrakan.fields.grid_part import whole_of
from spectrakan.fields.trajectories import require_trajectories
from spectrakan.models import from_pretrained
from spectrakan.models.operator import Operator, describe_model
from spectrakan.runs import RunFolder, RunLog, cut_log, make_record, provenance, read_log, read_record, write_record
from spectrakan.storage import versions
from spectrakan.training.assemble import build_session, calibrate_operator
from spectrakan.training.display import Display, display
from spectrakan.training.listeners import EXTRAS, CheckpointWriter, log_writer, tracker
from spectrakan.training.loop import Listener, train_epochs
from spectrakan.training.resolve import Resolved, resolve
from spectrakan.training.runtime import DTYPES, enough_memory, restarts, started
from spectrakan.training.session import Session, Stopped, listening

Data = Trajectories | Path | str


@dataclass(frozen=True)
class Run:
    """What a run gives."""

    model: Operator
    """With the best weights."""
    record: dict[str, Any]
    folder: Path | None = None

    def __repr__(self) -> str:
        error = self.record["metrics"].get("relative_l2")
        scored = "" if error is None else f", test relative L2 {error:.4g}"
        place = "" if self.folder is None else f", in {self.folder}"
        return f"Run({self.record['model']} on {self.record['task']}{scored}{place})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{value:.4g}</td></tr>"
            for name, value in self.record["metrics"].items()
            if value is not None
        )
        return f"<table><caption>{self.record['model']} on {self.record['task']}: test scores</caption>{rows}</table>"


def train(
    problem: str | Path | Mapping[str, Any] | None = None,
    model: str | nn.Module | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    output: Path | str | None = None,
    *,
    data: Data | None = None,
    test_data: Data | None = None,
    listeners: Sequence[Listener] = (),
    progress: bool | None = None,
) -> Run:
    """Train a model on a problem, test it and record it.

    `problem` is a known name, a YAML file or a config; without it the problem is what `data` pose (trajectories, or
    a file of any format that `load_dataset` reads). `model` is a name, or any `nn.Module` that is called as
    `module(x, params=None, grid=None)` with `x` `(B, history, *space, in)` at unit scale and gives
    `(B, *space, out)`. `overrides` are texts such as `training.epochs=20`, or values by name. With `output` the run
    is kept in that folder, data in memory included. `progress` shows how far the run is; by default on terminals and
    in notebooks.

    >>> import numpy as np
    >>> x = np.linspace(0, 1, 16, endpoint=False)
    >>> waves = np.stack([np.sin(2 * np.pi * (x - 0.05 * t) + p)[:, None] for p in range(8) for t in range(6)])
    >>> data = Trajectories.from_arrays(waves.reshape(8, 6, 16, 1), ("u",), boundary=("periodic",), name="wave")
    >>> run = train(data=data, overrides=["training.epochs=1", "model.width=8"])
    >>> run.record["task"], run.model.signature.history, run.model.signature.in_fields
    ('wave', 1, ('u',))
    """
    for item in (data, test_data):
        if item is not None and not isinstance(item, str | Path):
            require_trajectories(item, " or a file")
    if isinstance(problem, Trajectories):
        raise ConfigError("trajectories are given by name: sk.train(data=...)")
    if not isinstance(model, str | nn.Module | None):
        made = f"{model.__name__}(...)" if isinstance(model, type) else "an nn.Module"
        raise ConfigError(f"model must be a name or a module, got {type(model).__name__} {model!r}; give {made}")
    overrides = [overrides] if isinstance(overrides, str) else overrides
    overrides = as_overrides(overrides) if isinstance(overrides, Mapping) else overrides
    held, tests = (item if isinstance(item, Trajectories) else None for item in (data, test_data))
    module = model if isinstance(model, nn.Module) else None
    named = {
        "model.name": model if module is None else "module",
        "data.path": None if data is held else str(data),
        "data.test_path": None if test_data is tests else str(test_data),
    }
    resolved = resolve(problem, [*overrides, *as_overrides(named)], data=held, test_data=tests)
    folder = None if output is None else RunFolder(Path(output))
    if folder is not None and folder.started and not restarts():
        raise ConfigError(
            f"'{folder.path}' already holds a run; continue it by `{folder.resuming}`, or choose another folder"
        )
    with display(progress) as shown:
        return _run(resolved, folder, listeners, shown, module)


def resume(
    output: Path | str,
    *,
    epochs: int | None = None,
    model: nn.Module | None = None,
    listeners: Sequence[Listener] = (),
    progress: bool | None = None,
) -> Run:
    """Continue a run from its last checkpoint; a finished one is only read, unless `epochs` extends it.

    The schedule of an extended run is that of its new number of epochs. `model` is needed only where the run was
    started with a module of the user's own.
    """
    folder = RunFolder(Path(output))
    resolved = resolve(folder.read_config())
    if epochs is not None:
        resolved = _extended(folder, resolved, epochs)
    elif folder.finished:
        return Run(from_pretrained(folder.best), read_record(folder.record), folder.path)
    with display(progress) as shown:
        return _run(resolved, folder, listeners, shown, model, extends=epochs is not None)


def _extended(folder: RunFolder, resolved: Resolved, epochs: int) -> Resolved:
    """The run with more epochs; its folder is changed once training can begin."""
    now = resolved.config.training.epochs
    if epochs <= now:
        raise ConfigError(f"the run in '{folder.path}' has {now} epochs; extend it to more than that, got {epochs}")
    if not versions(folder.last):
        raise ConfigError(f"'{folder.path}' has no checkpoint to continue from")
    training = replace(resolved.config.training, epochs=epochs)
    return replace(resolved, config=replace(resolved.config, training=training))


def _run(
    resolved: Resolved,
    folder: RunFolder | None,
    listeners: Sequence[Listener],
    shown: Display,
    module: nn.Module | None,
    extends: bool = False,
) -> Run:
    for name in resolved.config.runtime.track:
        require_package(name, EXTRAS[name], f"runtime.track=[{name}]")
    with ExitStack() as stack:
        stop = stack.enter_context(listening())
        runtime = stack.enter_context(started(resolved.config.runtime))
        if folder is not None and runtime.writes:
            stack.enter_context(folder.held())
        runtime.wait()
        if folder is not None and folder.finished and not extends:
            return Run(from_pretrained(folder.best), read_record(folder.record), folder.path)
        saved = None
        if folder is not None and versions(folder.last):  # read early, so that damage shows at once
            saved, notice = load_newest(folder.last)
            if notice is not None:
                shown.say(f"warning: {notice}")
        if folder is not None and runtime.writes:
            shown.say(f"run folder: {folder.path}")
            resolved = _keep_data(resolved, folder)
        config = resolved.config
        stack.enter_context(enough_memory(config))
        prepared = prepare(
            resolved.problem,
            config.data,
            shown.progress(f"solving {config.task}") if runtime.writes else None,
            data=resolved.data,
            test_data=resolved.test_data,
            dtype=DTYPES[config.runtime.precision],
            space=runtime.space,
        )
        processes = None if saved is None else int(saved.position.get("processes", 1))
        session = build_session(config, prepared, runtime, module, processes=processes)
        session.stop = stop
        if folder is not None:
            _restore(session, folder, saved)
            if extends and runtime.writes:
                folder.extend(as_mapping(config))
        told = [*listeners, shown.listener] if runtime.writes else []
        try:
            return _carry_out(session, prepared, folder, told)
        except Stopped:
            if folder is not None and runtime.writes:
                shown.say(f"stopped; continue by: {folder.resuming}")
            raise


def _carry_out(
    session: Session,
    prepared: Prepared,
    folder: RunFolder | None,
    listeners: Sequence[Listener],
) -> Run:
    config, runtime, stop = session.config, session.runtime, session.stop
    writes = folder if runtime.writes else None
    begin = time.perf_counter()
    spent = 0.0 if folder is None else sum(line.get("seconds", 0.0) for line in read_log(folder.log))
    with ExitStack() as stack:
        log = None
        told: list[Listener] = []
        if writes is not None:
            log = stack.enter_context(closing(RunLog(writes.log)))
            told.append(log_writer(log, config.runtime.log_steps))
            for name in config.runtime.track:
                told.append(stack.enter_context(tracker(name, writes, session)))
        saver = CheckpointWriter(session, folder, log)
        # The log before the checkpoint: a kill between the two must not lose a line that the checkpoint is past.
        told += [saver, *listeners]
        stop.patient = True
        for event in train_epochs(session) if session.parameters else ():
            for listener in told:
                listener(event)
        if session.stopping or stop():
            if not session.stopping:
                saver.save_last()
            raise Stopped(stop.number or 15)
        stop.patient = False
        saver.save_last()
    model = session.model
    if session.best_weights:
        model.load_state_dict(session.best_weights)
    model.eval()
    calibrate_operator(model, config, prepared, runtime)
    seconds = spent + time.perf_counter() - begin
    if writes is not None:
        save_best(writes.best, describe_model(model), model.state_dict(), session.run_id)
    record = _record(session, prepared, seconds)
    if writes is not None:
        write_record(writes.record, record)
    runtime.wait()
    return Run(model, record, None if folder is None else folder.path)


def _record(session: Session, prepared: Prepared, seconds: float) -> dict[str, Any]:
    """The record of a run: its scores on the test part, whose samples the processes share, where there is one.

    Its config, data hash, seed and versions are enough to repeat it.
    """
    model, config, runtime, data = session.model, session.config, session.runtime, prepared.trajectories
    part, scores = prepared.parts["test"], {}
    if part.samples:
        # A problem with times of its own to score has no horizon beside them.
        own = None if prepared.problem.scored_times or data.steady else prepared.horizon
        scores = evaluate(
            model,
            part.trajectories,
            horizon=config.data.horizon or own,
            samples=part.samples,
            anomalies_from=prepared.parts["train"].samples if prepared.problem.anomalies else None,
            settings=EvaluationSettings(batch_size=config.training.batch_size, share=runtime.share),
        )
    return make_record(
        table="main",
        task=config.task,
        model=model.name,
        variant=config.model["variant"],
        scale=config.budget,
        seed=config.runtime.seed,
        resolution=list(whole_of(data.grid).shape),
        num_samples=data.num_samples,
        horizon=scores.get("horizon"),
        metrics=scores.get("metrics", {}),
        metrics_per_field=scores.get("metrics_per_field", {}),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        train_seconds=round(seconds, 3),
        peak_memory_mb=round(runtime.peak_memory_mb(), 1),
        config=as_mapping(config),
        provenance=provenance(
            data_sha256=session.data_sha256,
            device=runtime.device.type,
            processes=runtime.world_size,
            threads=torch.get_num_threads(),
            split=as_mapping(prepared.split),
        ),
    )


def _keep_data(resolved: Resolved, folder: RunFolder) -> Resolved:
    """Write data that are only in memory into the run folder, so that every command finds them again."""
    kept: dict[str, Any] = {}
    for key, name, data in (("path", "data.h5", resolved.data), ("test_path", "test_data.h5", resolved.test_data)):
        if data is None or getattr(resolved.config.data, key) is not None:
            continue
        place = (folder.path / name).absolute()
        if not place.is_file():
            write_dataset(place, data)
        kept[key] = str(place)
    return replace(resolved, config=replace(resolved.config, data=replace(resolved.config.data, **kept)))


def _restore(session: Session, folder: RunFolder, saved: Checkpoint | None) -> None:
    """Bind a new run to its folder, or restore the run of that folder; lines logged after its checkpoint go."""
    writes, digest = session.runtime.writes, session.data_sha256
    if writes and (saved is not None or folder.manifest.is_file()):  # neither, where a run was killed at its start
        session.run_id = folder.verify(data_sha256=digest)
    elif writes:
        folder.write_config(as_mapping(session.config))
        session.run_id = folder.write_manifest(data_sha256=digest)
    if saved is not None:
        if writes:
            require_same_run(folder.last, saved.run_id, session.run_id)
        has_best = saved.position.get("best") is not None
        if has_best or versions(folder.best):
            weights = load_best(folder.best, session.run_id if writes else None)
            # Weights that a killed run kept after this checkpoint are found again.
            session.best_weights = weights if has_best else {}
        session.restore(saved)
    if writes and folder.log.is_file():
        cut_log(folder.log, 0 if saved is None else saved.log_lines or 0)
    session.runtime.wait()
