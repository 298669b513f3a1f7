"""A whole run: data, training, the test at the end and the record; and going on with one that was cut short."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectrakan.checkpoint import Checkpoint, load_checkpoint
from spectrakan.config import as_mapping
from spectrakan.data.prepare import Prepared, prepare
from spectrakan.data.progress import Progress
from spectrakan.errors import ConfigError
from spectrakan.models import from_pretrained
from spectrakan.models.operator import Operator
from spectrakan.runs import RunFolder, RunLock, RunLog, read_log, read_record, write_record
from spectrakan.runs.log import rewind_log
from spectrakan.training.assemble import build_session, finish_operator
from spectrakan.training.events import Listener
from spectrakan.training.listeners import CheckpointWriter, LogWriter, TensorBoardWriter, require_tensorboard
from spectrakan.training.loop import train_epochs
from spectrakan.training.memory import enough_memory
from spectrakan.training.outcome import final_scores, record_of
from spectrakan.training.runtime import restarts, started
from spectrakan.training.session import Session
from spectrakan.training.settings import RunSettings, resolve
from spectrakan.training.stop import Stopped, StopRequest, listening


@dataclass(frozen=True)
class Run:
    """What came of a run."""

    model: Operator
    """With the best weights."""
    record: dict[str, Any]
    folder: Path | None = None


def train(
    task: str | Path | Mapping[str, Any],
    model: str | None = None,
    overrides: Sequence[str] = (),
    output: Path | str | None = None,
    *,
    listeners: Sequence[Listener] = (),
    progress: Progress | None = None,
) -> Run:
    """Train a model on a task (or what a YAML file or a record's config says), test it and record it.

    Without `output` nothing is written. `overrides` are texts such as `training.epochs=20`; `listeners` are
    told every event of the loop.
    """
    changes = [*overrides, *([] if model is None else [f"model.name={model}"])]
    choices = resolve(task, changes)
    folder = None if output is None else RunFolder(Path(output))
    if folder is not None and folder.started and not restarts():
        raise ConfigError(
            f"'{folder.path}' already holds a run; go on with it by `spectrakan train --resume {folder.path}`, "
            "or choose another folder"
        )
    return _run(choices, folder, listeners, progress)


def resume(output: Path | str, *, listeners: Sequence[Listener] = (), progress: Progress | None = None) -> Run:
    """Go on with a run where its last checkpoint stands; a finished one is only read."""
    folder = RunFolder(Path(output))
    choices = resolve(folder.read_config())
    if folder.finished:
        return Run(from_pretrained(folder.best), read_record(folder.record), folder.path)
    return _run(choices, folder, listeners, progress)


def _run(
    choices: RunSettings, folder: RunFolder | None, listeners: Sequence[Listener], progress: Progress | None
) -> Run:
    require_tensorboard(choices)
    with ExitStack() as stack:
        stop = stack.enter_context(listening())
        runtime = stack.enter_context(started(choices.runtime))
        if folder is not None and runtime.writes:
            stack.enter_context(_occupied(folder))
        runtime.wait()
        if folder is not None and folder.finished:
            return Run(from_pretrained(folder.best), read_record(folder.record), folder.path)
        saved = _saved(folder)
        stack.enter_context(enough_memory(choices))
        prepared = prepare(choices.task, choices.data, progress if runtime.writes else None)
        session = build_session(choices, prepared, runtime)
        session.stop_requested = stop
        if folder is not None:
            _take_up(session, folder, saved)
        return _carry_out(session, prepared, folder, listeners, stop)


def _carry_out(
    session: Session,
    prepared: Prepared,
    folder: RunFolder | None,
    listeners: Sequence[Listener],
    stop: StopRequest,
) -> Run:
    choices, runtime = session.choices, session.runtime
    writes = folder if runtime.writes else None
    if writes is not None and not writes.started:
        writes.write_config(as_mapping(choices))
    begin = time.perf_counter()
    spent = 0.0 if folder is None else sum(line.get("seconds", 0.0) for line in read_log(folder.log))
    with ExitStack() as stack:
        saver = CheckpointWriter(session, folder)
        told: list[Listener] = [saver, *(listeners if runtime.writes else ()), *_writers(stack, writes, session)]
        stop.patient = True
        if session.parameters:
            _listen(session, told)
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
    finish_operator(model, choices, prepared, runtime)
    seconds = spent + time.perf_counter() - begin
    if writes is not None:
        model.save_pretrained(writes.best)
    scores = final_scores(model, prepared, choices, runtime)
    record = record_of(model, prepared, choices, scores, seconds=seconds, runtime=runtime, digest=session.data_sha256)
    if writes is not None:
        write_record(writes.record, record)
    runtime.wait()
    return Run(model, record, None if folder is None else folder.path)


def _listen(session: Session, listeners: Sequence[Listener]) -> None:
    for event in train_epochs(session):
        for listener in listeners:
            listener(event)


def _saved(folder: RunFolder | None) -> Checkpoint | None:
    """The last checkpoint of a folder, if one was ever written; read early, so that damage is told at once.

    After a cut in the middle of an exchange its predecessor stands in for it.
    """
    if folder is None or not (folder.last.is_dir() or folder.last.with_name(".last.previous").is_dir()):
        return None
    return load_checkpoint(folder.last)


def _take_up(session: Session, folder: RunFolder, saved: Checkpoint | None) -> None:
    """Stand where the last checkpoint was taken, and forget what was logged after it."""
    if saved is not None and saved.position.get("best") is not None:
        # Before the state is restored, for building a model draws random numbers.
        session.best_weights = dict(from_pretrained(folder.best).state_dict())
    if saved is not None:
        session.restore(saved)
    if session.runtime.writes and folder.log.is_file():
        rewind_log(folder.log, session.position.step, session.loader.epoch)
    session.runtime.wait()


def _writers(stack: ExitStack, folder: RunFolder | None, session: Session) -> Iterator[Listener]:
    if folder is None:
        return
    choices = session.choices
    log = RunLog(folder.log)
    stack.callback(log.close)
    yield LogWriter(log, choices.runtime.log_steps)
    if choices.runtime.tensorboard:
        board = TensorBoardWriter(folder, session.position.step)
        stack.callback(board.close)
        yield board


@contextmanager
def _occupied(folder: RunFolder) -> Iterator[None]:
    """Hold the folder; one that was made for a run that never began is removed again."""
    made = folder.create()
    with RunLock(folder.lock):
        folder.discard_drafts()
        try:
            yield
        finally:
            if made and not folder.started:
                folder.lock.unlink(missing_ok=True)
                for place in made:
                    if not any(place.iterdir()):
                        place.rmdir()
