"""How large a campaign is: who competes on which cases, with which seeds, and what is tested.

A scale has the name of a budget. How a case is trained, on which samples, and how large a model is stand in
`spectrakan.training.presets` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.dymixop import register_dymixop
from experiments.families.catalog import FAMILIES, KINDS, RATES, register_families
from experiments.summarised_ffno import register_summarised
from experiments.unseen.catalog import UNSEEN, register_unseen
from spectrakan.data.problems import Problem, problem_named
from spectrakan.errors import ConfigError, nearest
from spectrakan.training.presets import LONGER

TEST_SEED = 731_064_285
"""Seed of the test samples, used for nothing else; older ones are in `docs/protocol.md`."""
DEVELOPMENT_SEED = 777
"""Seed of samples that may be scored at any time while a model is developed."""

BASELINES = ("unet", "fno", "ffno", "lno", "transolver", "local_fno", "deepokan", "cvit")
PEERS = ("dymixop",)
"""Later models than the paper's eight baselines, written in `experiments`; they compete like these."""
TRIVIAL = ("persistence", "climatology", "ridge")
"""Trivial baselines: what a trained model has to beat."""


@dataclass(frozen=True)
class Case:
    """A problem of the campaign, with what differs from its preset for all models alike."""

    name: str
    problem_name: str
    overrides: tuple[str, ...] = ()
    """Texts such as `data.fields=[]`."""
    epochs: int | None = None
    """Epochs at `short`; None: those of the problem's preset."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Learning rates by model, or variant such as `spectrakan/paper`; others have the preset's."""

    def overrides_at(self, scale: str) -> tuple[str, ...]:
        """What differs from the preset of a scale for all models alike."""
        if self.epochs is None:
            return self.overrides
        return (*self.overrides, f"training.epochs={self.epochs * (LONGER if scale == 'long' else 1)}")

    def rate_of(self, model: str, variant: str) -> tuple[str, ...]:
        """The learning rate of a model where it differs from the preset's."""
        rate = self.rates.get(f"{model}/{variant}", self.rates.get(model))
        return () if rate is None else (f"training.learning_rate={rate}",)

    @property
    def problem(self) -> Problem:
        """Data and facts of the case."""
        return problem_named(self.problem_name)


class UnseenCase(Case):
    """A problem that no preset was tuned on: its samples are trained on as a user's own."""

    def overrides_at(self, scale: str) -> tuple[str, ...]:
        """Its samples, and the epochs that follow from them."""
        return UNSEEN[self.problem_name].overrides_at(scale)


MAIN_CASES = ("cns1d", "diffusion_reaction1d", "darcy2d", "shallow_water2d", "droplet2d", "climate2d")
"""The tasks of the paper, in its order; shallow water by height alone."""
FIELDS_CASE = "shallow_water2d_fields"
CASES: dict[str, Case] = {
    **{name: Case(name, name) for name in MAIN_CASES},
    FIELDS_CASE: Case(FIELDS_CASE, "shallow_water2d", ("data.fields=[]",)),
    **{
        f"{name}_{kind}": Case(
            f"{name}_{kind}", family.problem, family.overrides(kind), family.epochs, RATES.get(f"{name}_{kind}", {})
        )
        for name, family in FAMILIES.items()
        for kind in KINDS
    },
    **{name: UnseenCase(name, name) for name in UNSEEN},
}
register_families()  # every process of a campaign reads its cases and models here
register_unseen()
register_summarised()
register_dymixop()


@dataclass(frozen=True)
class Scale:
    """A whole campaign: what the preset of its budget does not say."""

    name: str
    """The budget, and the folder of the records."""
    seeds: tuple[int, ...]
    """Seeds of SpectraKAN and of the strongest baselines; other models have the first one only."""
    rates: tuple[float, ...]
    """Learning rates that are tried first, from small to large."""
    rate_share: float
    """Share of the epochs of a case that a trial of a learning rate gets."""
    efficiency: tuple[int, ...]
    """Numbers of samples of the data-efficiency table, below the preset's."""
    cases: tuple[str, ...] = (*MAIN_CASES, FIELDS_CASE)
    baselines: tuple[str, ...] = BASELINES
    peers: tuple[str, ...] = ()
    """Competitors beside the baselines."""
    trivial: tuple[str, ...] = TRIVIAL
    test_seed: int = TEST_SEED
    test_samples: int | None = None
    """Test samples of every generated case; None: as many as the preset has."""
    long_samples: int = 8
    """Test samples that are rolled out five times as far."""
    resolutions: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: {"shallow_water2d": (32, 128)})
    """Other resolutions, by case, at which test samples are predicted."""
    efficiency_case: str = "darcy2d"
    runtime: Mapping[str, Any] = field(default_factory=lambda: {"threads": 1})

    @property
    def main_cases(self) -> list[str]:
        """The cases of the main table."""
        return [name for name in self.cases if name in MAIN_CASES]


_CAMPAIGN = Scale(
    name="short",
    seeds=(0, 1, 2, 3, 4),
    rates=(3e-3, 1e-2, 3e-2),
    rate_share=1.0,
    efficiency=(100, 300),
    cases=tuple(CASES),
    peers=PEERS,
    test_samples=500,
)
SCALES: dict[str, Scale] = {
    "smoke": Scale(
        name="smoke",
        cases=("cns1d", "darcy2d", "shallow_water2d", "droplet2d", *UNSEEN),
        baselines=("fno",),
        trivial=("persistence", "climatology"),
        seeds=(0, 1),
        rates=(1e-3, 4e-3),
        rate_share=0.5,
        efficiency=(5,),
        long_samples=1,
        resolutions={"shallow_water2d": (8, 32)},
    ),
    "short": _CAMPAIGN,
    # Unseen problems are trained as the library does by default, whose budget is `short`.
    "long": replace(_CAMPAIGN, name="long", cases=tuple(name for name in CASES if name not in UNSEEN)),
    "paper": Scale(
        "paper", seeds=(0, 1, 2), rates=(5e-4, 1e-3, 2e-3), rate_share=0.04, efficiency=(100, 1_000), runtime={}
    ),
}
"""The scales that can be run; `results/small` holds the records of an earlier campaign, which are only read."""


def scale_named(name: str) -> Scale:
    """The scale of that name; an unknown one raises `ConfigError` with the nearest."""
    if name not in SCALES:
        raise ConfigError(f"unknown scale '{name}'{nearest(name, SCALES)}; known: {', '.join(SCALES)}")
    return SCALES[name]


def case_named(name: str) -> Case:
    """The case of that name; an unknown one raises `ConfigError` with the nearest."""
    if name not in CASES:
        raise ConfigError(f"unknown task '{name}'{nearest(name, CASES)}; known: {', '.join(CASES)}")
    return CASES[name]
