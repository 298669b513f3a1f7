"""The curves of a run for tracking services: TensorBoard, Weights & Biases, MLflow; none unless asked for.

    spectrakan train darcy2d 'runtime.track=[tensorboard, mlflow]'

Each sink is a listener that passes the numbers of the loop's events on. Where a service stores them is up to its own
environment variables (`WANDB_MODE`, `MLFLOW_TRACKING_URI`, ...). A resumed run continues its curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError
from spectrakan.runs import RunFolder
from spectrakan.training.loop import EpochEnded, Event, StepTaken
from spectrakan.training.session import Session
from spectrakan.training.settings import RunSettings

EXTRAS = {"tensorboard": "track", "wandb": "wandb", "mlflow": "mlflow"}
"""The extra that brings each service's package."""


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


class Tracker:
    """A listener that passes the numbers of events on to a service."""

    def __call__(self, event: Event) -> None:
        """Add the numbers of an event to their curves."""
        if isinstance(event, StepTaken):
            self.add({"loss/step": event.loss, "rate": event.rate}, event.step)
        elif isinstance(event, EpochEnded):
            validation = {} if event.validation is None else {"validation": event.validation}
            self.add({"loss/epoch": event.loss, **validation}, event.step)

    def add(self, numbers: Mapping[str, float], step: int) -> None:
        """Add one point to each named curve."""
        raise NotImplementedError

    def close(self) -> None:
        """Put all curves where they belong."""
        raise NotImplementedError


class TensorBoard(Tracker):
    """Event files in the run's folder; points of a killed run after its last checkpoint are dropped."""

    def __init__(self, folder: RunFolder, session: Session) -> None:
        from torch.utils.tensorboard import SummaryWriter

        step = session.position.step
        self.writer = SummaryWriter(str(folder.path / "tensorboard"), purge_step=step + 1 if step else None)

    def add(self, numbers: Mapping[str, float], step: int) -> None:
        """Add one point to each curve."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Put all curves on disk."""
        self.writer.close()


class WandB(Tracker):
    """A run of Weights & Biases with the id of ours, so that a resumed run continues it."""

    def __init__(self, folder: RunFolder, session: Session) -> None:
        import wandb

        self.run: Any = wandb.init(
            project=session.config.task,
            name=folder.path.name,
            id=session.run_id[:32],
            resume="allow",
            dir=str(folder.path),
            config=as_mapping(session.config),
        )

    def add(self, numbers: Mapping[str, float], step: int) -> None:
        """Add one point to each curve."""
        self.run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Finish the run."""
        self.run.finish()


class MLflow(Tracker):
    """A run of MLflow, found again by a tag with the id of ours."""

    def __init__(self, folder: RunFolder, session: Session) -> None:
        from mlflow.tracking import MlflowClient

        self.client: Any = MlflowClient()
        task, tag = session.config.task, session.run_id
        known = self.client.get_experiment_by_name(task)
        experiment = self.client.create_experiment(task) if known is None else known.experiment_id
        found = self.client.search_runs([experiment], filter_string=f"tags.spectrakan_run = '{tag}'")
        made = found[0] if found else self.client.create_run(
            experiment, tags={"spectrakan_run": tag}, run_name=folder.path.name
        )  # fmt: skip
        self.run_id = made.info.run_id
        if not found:
            for name, value in as_mapping(session.config)["model"].items():
                self.client.log_param(self.run_id, name, value)

    def add(self, numbers: Mapping[str, float], step: int) -> None:
        """Add one point to each curve."""
        for name, value in numbers.items():
            self.client.log_metric(self.run_id, name, value, step=step)

    def close(self) -> None:
        """Finish the run."""
        self.client.set_terminated(self.run_id)


TRACKERS: dict[str, Callable[[RunFolder, Session], Tracker]]
TRACKERS = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}
"""The tracker of each service."""
