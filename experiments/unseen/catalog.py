"""The problems that no preset was tuned on, and how many samples of each are trained on.

They are trained as `sk.train(data=...)` trains data of its user: by the general plan of `presets.py`, with the epochs
that follow from the number of windows, and with nothing chosen for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.unseen import gray_scott2d, kuramoto_sivashinsky1d, vorticity2d
from spectrakan.data.prepare import NO_TEST
from spectrakan.data.problems import Problem, find_problem, register_problem
from spectrakan.pde.equation import Equation
from spectrakan.training.presets import preset


@dataclass(frozen=True)
class Unseen:
    """An equation, the samples that are made of it, and the few of a campaign of scale `smoke`."""

    equation: Equation
    num_samples: int
    smoke: Mapping[str, int]

    def overrides_at(self, scale: str) -> tuple[str, ...]:
        """Number and size of the samples, and the epochs that the library's general plan gives so many windows."""
        data = dict(self.smoke) if scale == "smoke" else {"num_samples": self.num_samples}
        problem = problem_of(self.equation)
        frames = data.get("frames", problem.frames) - problem.history
        windows = round(NO_TEST.train * data["num_samples"]) * frames
        epochs = preset(problem, budget=scale, windows=windows).training.epochs
        return (*(f"data.{key}={value}" for key, value in data.items()), f"training.epochs={epochs}")


def problem_of(equation: Equation) -> Problem:
    """The problem of an equation, made known by its name in this process."""
    return find_problem(equation.name) or register_problem(equation)


UNSEEN: dict[str, Unseen] = {
    entry.equation.name: entry
    for entry in (
        Unseen(kuramoto_sivashinsky1d.EQUATION, 300, {"num_samples": 6, "resolution": 64, "frames": 8}),
        Unseen(gray_scott2d.EQUATION, 200, {"num_samples": 6, "resolution": 16, "frames": 8}),
        Unseen(vorticity2d.EQUATION, 200, {"num_samples": 6, "resolution": 16, "frames": 8}),
    )
}


def register_unseen() -> None:
    """Make the problems known by name in this process."""
    for entry in UNSEEN.values():
        problem_of(entry.equation)
