"""What fixes a generated set: sample i depends on the recipe and on i, not on how many others are made."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spectrakan.data.source import Block
from spectrakan.data.survey import Progress
from spectrakan.errors import SpectraKANError
from spectrakan.pde.equation import Equation


@dataclass(frozen=True, eq=False)
class Recipe:
    """An equation, its parameters, a grid, times and a seed.

    `varied` `(num_samples, len(varied_names))` are parameters that differ from sample to sample.
    """

    equation: Equation
    parameters: Any
    resolution: tuple[int, ...]
    times: tuple[float, ...]
    seed: int
    varied_names: tuple[str, ...] = ()
    varied: npt.NDArray[np.float64] | None = None

    def draw(self, samples: range) -> Tensor:
        """Initial or input fields `(len(samples), *space, channels)`, float64."""
        return torch.cat([self._draw_sample(number) for number in samples])

    def solve(self, samples: range) -> Tensor:
        """Solutions `(len(samples), times, *space, channels)`, float64."""
        initial = self.draw(samples)
        if self.varied is None:
            solved = self.equation.solve(initial, self.times, self.parameters)
        else:
            values = torch.from_numpy(self.varied[samples.start : samples.stop])
            own = dict(zip(self.varied_names, values.unbind(1), strict=True))
            solved = self.equation.solve_varied(initial, self.times, self.parameters, own)
        if not bool(solved.isfinite().all()):
            broken = samples[int((~solved.isfinite()).flatten(1).any(1).nonzero()[0])]
            raise SpectraKANError(
                f"{self.equation.name}: the solution of sample {broken} is not finite; "
                "its parameters or its resolution ask too much of the solver"
            )
        return solved

    def _draw_sample(self, number: int) -> Tensor:
        """One sample, from its own stream of random numbers."""
        # One seed from two numbers, so that streams of different sets do not overlap.
        state = np.random.SeedSequence((self.seed, number)).generate_state(1, np.uint64)
        generator = torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
        return self.equation.sample(1, self.resolution, self.parameters_of(number), generator)

    def parameters_of(self, sample: int) -> Any:
        """The parameters of one sample: its own values, and its number where a family counts its samples."""
        changes: dict[str, Any] = {}
        if any(entry.name == "first_seed" for entry in fields(self.parameters)):
            changes["first_seed"] = self.parameters.first_seed + sample
        if self.varied is not None and sample < len(self.varied):
            changes |= dict(zip(self.varied_names, self.varied[sample].tolist(), strict=True))
        return replace(self.parameters, **changes)


@dataclass(frozen=True, eq=False)
class RecipeSource:
    """One array of a generated set, `(samples, time, *space, channel)` in float64, made when a block is read."""

    recipe: Recipe
    shape: tuple[int, ...]
    inputs: bool = False
    progress: Progress | None = None
    dtype: np.dtype[Any] = np.dtype(np.float64)  # noqa: RUF009 - immutable

    def __getitem__(self, block: Block, /) -> npt.NDArray[np.float64]:
        """The samples of the block as one batch where they follow each other, else one by one."""
        samples = range(self.shape[0])[block[0]]
        batches = [samples] if samples.step == 1 else [range(sample, sample + 1) for sample in samples]
        made = [self.recipe.draw(batch)[:, None] if self.inputs else self.recipe.solve(batch) for batch in batches]
        if self.progress is not None:
            self.progress(samples[-1] + 1, self.shape[0])
        return torch.cat(made).numpy()[(slice(None), *block[1:])]
