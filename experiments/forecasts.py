"""Predictions of test samples by the trained models of a campaign, for figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.archive import Archive
from experiments.datasets import Datasets
from experiments.main import TABLE
from experiments.sample_maps import Sample
from experiments.scales import case_named
from spectrakan.evaluation.batches import EvaluationSettings, predicted_batches
from spectrakan.fields import Trajectories, Window
from spectrakan.models import from_pretrained
from spectrakan.models.operator import Operator
from spectrakan.report.figures.maps import Values

READER = "figures"


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Test samples of a case and each model's predictions `(samples, horizon, *space, field)`."""

    case: str
    trajectories: Trajectories
    samples: tuple[int, ...]
    window: Window
    """What the models see of each sample, and the true frames that follow."""
    predictions: dict[str, Values]
    models: dict[str, Operator]

    @property
    def truth(self) -> Values:
        """The true frames at the predicted times, `(samples, horizon, *space, field)`."""
        values: Values = self.window.targets.numpy()
        return values

    def sample(self, field: int = 0, index: int = 0) -> Sample:
        """One field of one sample, to be drawn."""
        data, given = self.trajectories, self.window.inputs[index].numpy()
        predicted = {name: values[index, ..., field] for name, values in self.predictions.items()}
        truth = self.truth[index, ..., field]
        if data.steady:
            source = data.input_fields[0]
            return Sample(data.fields[field], data.grid, [0.0], truth, predicted, given[..., 0], (), source)
        times, history = [float(time) for time in data.times], len(given)
        after = times[history : history + len(truth)]
        return Sample(data.fields[field], data.grid, after, truth, predicted, given[..., field], times[:history])


def trained_models(archive: Archive, case: str, table: str = TABLE) -> dict[str, Operator]:
    """The models of a case whose record and weights are both there, first seed; variants as `model (variant)`."""
    found: dict[str, Operator] = {}
    for record in archive.records(table):
        details = record["details"]
        if details["case"] != case or record["seed"] != 0 or details["label"]:
            continue
        folder = archive.kept_run(record)
        if folder.best.is_dir():
            name = record["model"] if record["variant"] == "default" else f"{record['model']} ({record['variant']})"
            found[name] = from_pretrained(folder.best).eval()
    return found


def forecasts(archive: Archive, case: str, models: dict[str, Operator], num_samples: int = 1) -> Forecasts | None:
    """The first test samples of a case as all its trained models predict them; None where no model is there."""
    if not models:
        return None
    test = Datasets(archive).test(case, READER)
    chosen = tuple(test.samples[:num_samples])
    history = next(iter(models.values())).signature.history
    left = len(test.trajectories.times) - history
    horizon = 1 if test.trajectories.steady else min(case_named(case).problem.horizon, left)
    whole = EvaluationSettings(batch_size=len(chosen))
    predicted: dict[str, Values] = {}
    for name, model in models.items():
        ((window, frames),) = predicted_batches(model, test.trajectories, chosen, horizon, whole)
        predicted[name] = np.asarray(frames)
    return Forecasts(case, test.trajectories, chosen, window, predicted, dict(models))
