"""What the trained models of a campaign say about its test samples, for figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.data.catalog import task as task_named
from spectrakan.evaluation.batches import predict_frames
from spectrakan.experiments.archive import Archive
from spectrakan.experiments.datasets import Datasets
from spectrakan.experiments.main import TABLE
from spectrakan.experiments.scales import scale_named
from spectrakan.fields import Trajectories
from spectrakan.models import from_pretrained
from spectrakan.models.operator import Operator
from spectrakan.report.figures.sample import Sample, Values
from spectrakan.runs import RunFolder

READER = "figures"


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Test samples of a case and each model's predictions `(samples, horizon, *space, field)`."""

    case: str
    trajectories: Trajectories
    samples: tuple[int, ...]
    predictions: dict[str, Values]
    models: dict[str, Operator]

    @property
    def history(self) -> int:
        """Frames that the models see."""
        return next(iter(self.models.values())).signature.history

    @property
    def windows(self) -> npt.NDArray[np.float32]:
        """What the models see of each sample, `(samples, history, *space, field)`."""
        return windows_of(self.trajectories, self.samples, self.history)

    @property
    def params(self) -> Tensor | None:
        """Parameters of the samples, `(samples, num_params)`, if they have any."""
        return params_of(self.trajectories, self.samples)

    @property
    def horizon(self) -> int:
        """Frames that were predicted."""
        return int(next(iter(self.predictions.values())).shape[1])

    @property
    def truth(self) -> Values:
        """The predicted frames as they were, `(samples, horizon, *space, field)`."""
        values = np.stack([np.asarray(self.trajectories.values[index]) for index in self.samples])
        first = 0 if self.trajectories.steady else self.history
        return values[:, first : first + self.horizon]

    def sample(self, field: int = 0, place: int = 0) -> Sample:
        """One field of one sample, to be drawn."""
        data, index = self.trajectories, self.samples[place]
        said = {name: values[place, ..., field] for name, values in self.predictions.items()}
        truth = self.truth[place, ..., field]
        if data.inputs is not None:
            given = np.asarray(data.inputs[index])[..., 0]
            return Sample(data.fields[field], data.grid, [0.0], truth, said, given, (), data.input_fields[0])
        times = [float(time) for time in data.times]
        given = np.asarray(data.values[index])[: self.history, ..., field]
        after = times[self.history : self.history + self.horizon]
        return Sample(data.fields[field], data.grid, after, truth, said, given, times[: self.history])


def trained_models(archive: Archive, case: str, table: str = TABLE) -> dict[str, Operator]:
    """The models of a case whose record and weights are both there, first seed; variants as `model (variant)`."""
    first = scale_named(archive.scale).seeds[0]
    found: dict[str, Operator] = {}
    for record in archive.records(table):
        details = record["details"]
        if details["case"] != case or record["seed"] != first or details["label"]:
            continue
        folder = archive.kept_run(record)
        if folder.best.is_dir():
            name = record["model"] if record["variant"] == "default" else f"{record['model']} ({record['variant']})"
            found[name] = _loaded(folder)
    return found


def forecasts(archive: Archive, case: str, models: dict[str, Operator], num_samples: int = 1) -> Forecasts | None:
    """The first test samples of a case as all its trained models predict them; None where no model is there."""
    if not models:
        return None
    scale = scale_named(archive.scale)
    test = Datasets(scale, archive.cache, archive.ledger).test(case, READER)
    chosen = tuple(test.samples[:num_samples])
    history = next(iter(models.values())).signature.history
    left = len(test.trajectories.times) - history
    horizon = 1 if test.trajectories.steady else min(task_named(scale.cases[case].task).horizon, left)
    said = {name: _predicted(model, test.trajectories, chosen, horizon) for name, model in models.items()}
    return Forecasts(case, test.trajectories, chosen, said, dict(models))


def _predicted(model: Operator, data: Trajectories, samples: Sequence[int], horizon: int) -> Values:
    windows = torch.from_numpy(windows_of(data, samples, model.signature.history))
    answers: Values = predict_frames(model, windows, horizon, params_of(data, samples), data.grid).numpy()
    return answers


def windows_of(data: Trajectories, samples: Sequence[int], history: int) -> npt.NDArray[np.float32]:
    """The first window of each sample, `(samples, history, *space, field)`."""
    source = data.values if data.inputs is None else data.inputs
    return np.stack([np.asarray(source[index], dtype=np.float32)[:history] for index in samples])


def params_of(data: Trajectories, samples: Sequence[int]) -> Tensor | None:
    """Parameters of some samples, if they have any."""
    if data.params is None:
        return None
    return torch.as_tensor(np.asarray(data.params, dtype=np.float32)[list(samples)])


def _loaded(folder: RunFolder) -> Operator:
    model = from_pretrained(folder.best)
    model.eval()
    return model
