"""The curves of a run for tracking services: TensorBoard, Weights & Biases, MLflow; none unless asked for.

    spectrakan train darcy2d 'runtime.track=[tensorboard, mlflow]'

Each service is a context that gives a function which adds one point to each named curve; a listener calls it with the
numbers of the loop's events. Where a service stores them is up to its own environment variables (`WANDB_MODE`,
`MLFLOW_TRACKING_URI`, ...). A resumed run continues its curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec

from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError
from spectrakan.runs import RunFolder
from spectrakan.training.loop import EpochEnded, Event, Listener, StepTaken
from spectrakan.training.session import Session
from spectrakan.training.settings import RunSettings

EXTRAS = {"tensorboard": "track", "wandb": "wandb", "mlflow": "mlflow"}
"""The extra that brings each service's package."""
Add = Callable[[dict[str, float], int], object]
"""Adds one point to each named curve, at a step."""


def require_tracking(config: RunSettings) -> None:
    """Refuse to track a run where the package for it is not installed, before anything is done."""
    for name in config.runtime.track:
        if not _installed(name):
            extra = f"pip install 'spectrakan[{EXTRAS[name]}]'"
            raise ConfigError(f"runtime.track=[{name}] needs the extra `{EXTRAS[name]}`: {extra}")


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # a module that was put aside has no description
        return False


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
