"""What listens to the events of the training loop: the run's log, its checkpoints, and tracking services.

    spectrakan train darcy2d 'runtime.track=[tensorboard, mlflow]'

Curves go to TensorBoard, Weights & Biases and MLflow, to none unless asked for. Each service is a context that gives
a function which adds one point to each named curve; a listener calls it with the numbers of the loop's events. Where
a service stores them is up to its own environment variables (`WANDB_MODE`, `MLFLOW_TRACKING_URI`, ...). A resumed run
continues its curves.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from spectrakan.checkpoint import save_best, save_checkpoint
from spectrakan.config import as_mapping
from spectrakan.errors import RunError
from spectrakan.models.operator import describe_model
from spectrakan.runs import RunFolder, RunLog
from spectrakan.training.loop import EpochEnded, Event, Listener, Recovered, StepTaken
from spectrakan.training.session import Session

LOGGED: dict[type[Event], tuple[str, tuple[str, ...]]] = {
    StepTaken: ("step", ("loss", "rate", "gradient_norm")),
    EpochEnded: ("epoch", ("loss", "validation", "is_best")),
    Recovered: ("recovery", ("reason", "rate_factor")),
}
"""Name and numbers of each event in the log."""
EXTRAS = {"tensorboard": "track", "wandb": "wandb", "mlflow": "mlflow"}
"""The extra that brings each service's package."""
Add = Callable[[dict[str, float], int], object]
"""Adds one point to each named curve, at a step."""


def log_writer(log: RunLog, every: int) -> Listener:
    """Writes every n-th step, every epoch and every recovery to the run's log."""
    since = time.perf_counter()

    def listener(event: Event) -> None:
        nonlocal since
        if isinstance(event, StepTaken) and event.step % every:
            return
        now, (name, keys) = time.perf_counter(), LOGGED[type(event)]
        values = {key: getattr(event, key) for key in ("epoch", "step", *keys)}
        # Time since the line before, so that the sum over lines is the time of the run, resumed or not.
        log.write(name, **values, seconds=round(now - since, 4))
        since = now

    return listener


class CheckpointWriter:
    """Saves `last` when it is due, and `best` when an epoch was the best; all processes take part."""

    def __init__(self, session: Session, folder: RunFolder | None, log: RunLog | None = None) -> None:
        self.session = session
        self.folder = folder
        self.log = log
        self.since = time.monotonic()
        session.checkpoint_wanted = self.wanted

    def __call__(self, event: Event) -> None:
        """Save what an event calls for."""
        session = self.session
        if isinstance(event, EpochEnded) and event.is_best and self.folder is not None and session.runtime.writes:
            self.folder.require_present()
            save_best(self.folder.best, describe_model(session.model), session.best_weights, session.run_id)
        if isinstance(event, StepTaken) and (session.checkpoint_due or session.stopping):
            self.save_last()

    def save_last(self) -> None:
        """Write the whole state, so that a run can go on from here."""
        state = self.session.capture()
        if self.folder is not None and self.session.runtime.writes:
            self.folder.require_present()
            lines = None if self.log is None else self.log.mark()
            bound = replace(state, run_id=self.session.run_id, log_lines=lines)
            try:
                save_checkpoint(self.folder.last, bound, keep=self.session.config.runtime.keep_checkpoints)
            except RunError:
                self.folder.require_present()
                raise
        self.since = time.monotonic()

    def wanted(self) -> bool:
        """Whether the step that is under way should be followed by a checkpoint."""
        config = self.session.config.runtime
        if self.folder is None:
            return False
        if config.checkpoint_steps:
            return (self.session.position.step + 1) % config.checkpoint_steps == 0
        return time.monotonic() - self.since >= config.checkpoint_seconds


@contextmanager
def tracker(name: str, folder: RunFolder, session: Session) -> Iterator[Listener]:
    """A listener that passes the numbers of events on to the service of that name."""
    with SERVICES[name](folder, session) as add:

        def listener(event: Event) -> None:
            if isinstance(event, StepTaken):
                add({"loss/step": event.loss, "rate": event.rate}, event.step)
            elif isinstance(event, EpochEnded):
                validation = {} if event.validation is None else {"validation": event.validation}
                add({"loss/epoch": event.loss, **validation}, event.step)

        yield listener


@contextmanager
def _tensorboard(folder: RunFolder, session: Session) -> Iterator[Add]:
    """Event files in the run's folder; points of a killed run after its last checkpoint are dropped."""
    from torch.utils.tensorboard import SummaryWriter

    step = session.position.step
    with SummaryWriter(str(folder.path / "tensorboard"), purge_step=step + 1 if step else None) as writer:
        yield lambda numbers, step: [writer.add_scalar(name, value, step) for name, value in numbers.items()]


@contextmanager
def _wandb(folder: RunFolder, session: Session) -> Iterator[Add]:
    """A run of Weights & Biases with the id of ours, so that a resumed run continues it."""
    import wandb

    place, name, config = str(folder.path), folder.path.name, session.config
    run = wandb.init(
        project=config.task, name=name, id=session.run_id[:32], resume="allow", dir=place, config=as_mapping(config)
    )
    try:
        yield lambda numbers, step: run.log(numbers, step=step)
    finally:
        run.finish()


@contextmanager
def _mlflow(folder: RunFolder, session: Session) -> Iterator[Add]:
    """A run of MLflow, found again by a tag with the id of ours."""
    from mlflow.tracking import MlflowClient

    client, task, tag = MlflowClient(), session.config.task, session.run_id
    known = client.get_experiment_by_name(task)
    experiment = client.create_experiment(task) if known is None else known.experiment_id
    found = client.search_runs([experiment], filter_string=f"tags.spectrakan_run = '{tag}'")
    if found:
        run = found[0].info.run_id
    else:
        run = client.create_run(experiment, tags={"spectrakan_run": tag}, run_name=folder.path.name).info.run_id
        for name, value in as_mapping(session.config)["model"].items():
            client.log_param(run, name, value)
    try:
        yield lambda numbers, step: [
            client.log_metric(run, name, value, step=step) for name, value in numbers.items()
        ]
    finally:
        client.set_terminated(run)


SERVICES: dict[str, Callable[[RunFolder, Session], AbstractContextManager[Add]]]
SERVICES = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow}
