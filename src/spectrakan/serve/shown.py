"""The models that a server knows by name: those that ship with the package, and the runs that it was given."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError
from spectrakan.evaluation.batches import first_windows, predicted_batches
from spectrakan.evaluation.operators import as_operator
from spectrakan.fields import Trajectories
from spectrakan.models import Operator, from_pretrained
from spectrakan.models.pretrained import PRETRAINED, shipped
from spectrakan.serve.scenes import watched
from spectrakan.storage import read_json
from spectrakan.theory.parts import edge_views, token_inputs, token_kan

MOST_EDGES = 24
MOST_FRAMES = 100
Array = npt.NDArray[np.float32]


@dataclass
class Shipped:
    """A model of the package."""

    model: Operator
    facts: dict[str, Any]
    """Training range, scores, band and certificate, as the model's card has them."""

    @property
    def task(self) -> str:
        """The problem that it learnt."""
        return str(self.facts["task"])


@dataclass
class GivenRun:
    """A finished run with the samples on which it is looked at."""

    name: str
    task: str
    model: Operator
    trajectories: Trajectories
    samples: Sequence[int]
    record: dict[str, Any]
    certificate: dict[str, Any] | None = None
    warning: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """What a page tells of the run."""
        record, grid = self.record, self.trajectories.grid
        return {
            "task": self.task,
            "model": record.get("model", self.model.name),
            "parameters": record.get("parameters"),
            "metrics": record.get("metrics", {}),
            "train_seconds": record.get("train_seconds"),
            "fields": [field.name for field in self.trajectories.fields],
            "samples": len(self.samples),
            "times": [float(value) for value in self.trajectories.times],
            "history": self.model.signature.history,
            "steady": not self.model.signature.evolves,
            "shape": list(grid.shape),
            "certificate": self.certificate,
            "warning": self.warning,
        }

    def sample(self, index: int) -> tuple[dict[str, Array], float]:
        """Input, truth, prediction and attention of a sample, and the mean relative L2 error."""
        ahead = len(self.trajectories.times) - self.model.signature.history
        horizon = min(MOST_FRAMES, ahead) if self.model.signature.evolves else 1
        ((window, given),) = predicted_batches(self.model, self.trajectories, [self.samples[index]], horizon)
        parts = {"input": window.inputs[0], "truth": window.targets[0], "prediction": given[0]}
        if self.model.name == "spectrakan" and window.params is None:
            with torch.inference_mode():
                parts["attention"] = watched(self.model, window.inputs.float())[1].reshape(window.inputs.shape[2:-1])
        error = float((given - window.targets).norm() / window.targets.norm().clamp_min(1e-12))
        return {name: np.asarray(part, np.float32) for name, part in parts.items()}, error

    @cached_property
    def inside(self) -> dict[str, Any]:
        """The curves of the token's KAN on the run's samples, and the gates of the trunk."""
        gates = {
            key: [round(float(gate), 4) for gate in value.detach().flatten()]
            for key, value in self.model.named_parameters()
            if key.endswith(".gate")
        }
        found: dict[str, Any] = {"gates": gates, "layers": [], "settings": as_mapping(self.model.config)}
        try:
            kan = token_kan(self.model)
        except ConfigError:
            return found
        operator = as_operator(self.model, self.trajectories)
        windows = first_windows(operator, self.trajectories, list(self.samples)[:64], 1)
        first = windows.gather(range(len(windows)))
        views = edge_views(kan, token_inputs(self.model, first.inputs, first.params, first.grid), num_points=60)
        for view in views:
            spread = view.spread()
            strongest = spread.flatten().argsort(descending=True)[:MOST_EDGES]
            edges = [divmod(int(place), spread.shape[1]) for place in strongest]
            found["layers"].append(
                [
                    {
                        "from": source,
                        "to": target,
                        "x": [round(float(v), 4) for v in view.points[source]],
                        "y": [round(float(v), 4) for v in view.curves[target, source]],
                        "knots": [round(float(v), 4) for v in view.knots[source]],
                    }
                    for target, source in edges
                ]
            )
        return found


Known = Shipped | GivenRun


def known_models(runs: Sequence[GivenRun]) -> dict[str, Known]:
    """All models by name; a run with the name of another gets a number behind it."""
    table: dict[str, Known] = {
        name: Shipped(from_pretrained(name).eval(), read_json(PRETRAINED / f"{name}.json")) for name in shipped()
    }
    for run in runs:
        name, number = run.name, 2
        while name in table:
            name, number = f"{run.name}-{number}", number + 1
        run.name = name
        table[name] = run
    return table
