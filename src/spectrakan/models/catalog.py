"""All operators by name, their named variants, what they are on other grids, and users' own models."""

from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from spectrakan.config import as_mapping, build_settings, describe
from spectrakan.errors import ConfigError, nearest
from spectrakan.fields import OperatorSignature
from spectrakan.models.cvit import CViT, CViTConfig
from spectrakan.models.deepokan import DeepOKAN, DeepOKANConfig
from spectrakan.models.deeponet import DeepONet, DeepONetConfig
from spectrakan.models.ffno import FFNO, FFNOConfig
from spectrakan.models.fno import FNO, FNOConfig
from spectrakan.models.lno import LNO, LNOConfig
from spectrakan.models.local_fno import LocalFNO, LocalFNOConfig
from spectrakan.models.operator import Operator
from spectrakan.models.own_module import Factory, ModuleConfig, ModuleOperator
from spectrakan.models.spectrakan import AMFNO, AMFNOConfig, SpectraKAN, SpectraKANConfig
from spectrakan.models.stages import Stages
from spectrakan.models.transolver import Transolver, TransolverConfig
from spectrakan.models.trivial import Climatology, Persistence, Ridge, RidgeConfig, TrivialConfig
from spectrakan.models.unet import UNet, UNetConfig


class Entry(NamedTuple):
    """A model of the catalog; each takes any number of cells from `operator.MIN_CELLS` on along one to three axes."""

    operator: type[Operator]
    config: type[Any]
    order: int | None
    """What one set of weights is on another grid: the same operator up to an error of at least this order in the
    cell width, for smooth fields; or (`None`) a network that runs there, but whose stencils change their meaning."""
    reads: str
    """How the input field is read."""

    @property
    def refinement(self) -> str:
        """The order in words.

        >>> MODELS["persistence"].refinement
        'same operator, order 2'
        """
        return "runs only" if self.order is None else f"same operator, order {self.order}"


MODELS: dict[str, Entry] = {
    "spectrakan": Entry(SpectraKAN, SpectraKANConfig, 2, "modes below each axis' limit"),
    "amfno": Entry(AMFNO, AMFNOConfig, 2, "modes below each axis' limit"),
    "unet": Entry(UNet, UNetConfig, None, "3-wide stencils of cells"),
    # Two cells of padding, as published; order 2 without padding.
    "fno": Entry(FNO, FNOConfig, 1, "low modes of all axes jointly"),
    "ffno": Entry(FFNO, FFNOConfig, 2, "low modes of each axis"),
    "lno": Entry(LNO, LNOConfig, 1, "poles and residues in physical units"),
    "transolver": Entry(Transolver, TransolverConfig, 2, "cells by coordinates, in learned slices"),
    "local_fno": Entry(LocalFNO, LocalFNOConfig, 1, "low modes, and kernels in physical units"),
    "deepokan": Entry(DeepOKAN, DeepOKANConfig, 2, "fixed sensors"),
    "deeponet": Entry(DeepONet, DeepONetConfig, 2, "fixed sensors"),
    "cvit": Entry(CViT, CViTConfig, 2, "patches of a fixed lattice"),
    "persistence": Entry(Persistence, TrivialConfig, 2, "the last frame"),
    "climatology": Entry(Climatology, TrivialConfig, 2, "nothing"),
    "ridge": Entry(Ridge, RidgeConfig, 2, "low modes of all axes jointly"),
}
"""Every operator by name."""

_PAPER: dict[str, Any] = {
    "num_modes": 12, "coarse_num_layers": 4, "coarse_mixing": "axial", "block": "plain", "squeeze_excite": "plain",
    "basis": "fourier", "coordinates": "all", "extension": "zero", "pool": "center", "conditioning": "readout",
    "predict": "direct", "noise_level": 0.0, "range_margin": None,
}  # fmt: skip
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "spectrakan": {"paper": _PAPER},
    "amfno": {"paper": _PAPER},
}
"""Named sets of settings beside `default`, which is the class's own: `paper` is the text to the letter."""

OWN = "module"
"""Name under which a module that is handed over, not registered, is configured: it has only stages."""
ENTRY_POINTS = "spectrakan.models"
_REGISTERED: dict[str, Factory] = {}


def register_model(name: str, factory: Factory) -> None:
    """Add a model of your own under a name that `build_model`, `sk.train` and the commands take.

    `factory(signature, **settings)` returns an `nn.Module` that is called as `module(x, params=None, grid=None)` at
    unit scale (`models/own_module`). Packages register models by entry points of the group `spectrakan.models`.
    """
    if name == OWN or name in MODELS or name in _REGISTERED:
        raise ConfigError(f"the name '{name}' is taken; register the model under another one")
    _REGISTERED[name] = factory


def known_factory(name: str) -> Factory | None:
    """The factory of a registered model, by entry point if need be; None where there is none."""
    if name not in _REGISTERED and name not in MODELS and name != OWN:
        for found in entry_points(group=ENTRY_POINTS, name=name):
            register_model(name, found.load())
    return _REGISTERED.get(name)


def build_model(name: str, signature: OperatorSignature, *, variant: str = "default", **settings: Any) -> Operator:
    """Build an operator by name for a signature; settings beyond the variant's, the stages' among them, by name.

    >>> signature = OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=3)
    >>> model = build_model("spectrakan", signature, width=16, num_modes=8, noise_level=0.0)
    >>> model.config.width, model.config.num_layers, model.stages.noise_level
    (16, 4, 0.0)
    """
    config, stages = _settings(name, variant, settings)
    return construct(name, signature, config, stages)


def construct(name: str, signature: OperatorSignature, config: Any, stages: Stages) -> Operator:
    """The operator of complete settings."""
    factory = known_factory(name)
    if factory is None:
        return MODELS[name].operator(signature, config, stages)
    return ModuleOperator(name, factory, signature, config, stages)


def complete_settings(name: str, variant: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a model and its stages, flat: the class's defaults, changed by the variant and those given."""
    config, stages = _settings(name, variant, given)
    own = config.settings if isinstance(config, ModuleConfig) else as_mapping(config)
    return {**own, **as_mapping(stages)}


def config_class(name: str) -> type[Any]:
    """The settings class of a model; an unknown name raises `ConfigError` with the nearest known one."""
    if name == OWN or known_factory(name) is not None:
        return ModuleConfig
    if name not in MODELS:
        raise ConfigError(f"unknown model '{name}'{nearest(name, [*MODELS, *_REGISTERED])}")
    return MODELS[name].config


def meanings_of(name: str) -> dict[str, str]:
    """What each setting of a model and its stages means."""
    own = {} if config_class(name) is ModuleConfig else describe(config_class(name))
    return {**own, **describe(Stages)}


def _settings(name: str, variant: str, given: Mapping[str, Any]) -> tuple[Any, Stages]:
    """Settings of the network and of the stages, from both given side by side."""
    cls, named = config_class(name), {"default": {}, **VARIANTS.get(name, {})}
    if variant not in named:
        raise ConfigError(f"model '{name}' has no variant '{variant}'{nearest(variant, named)}")
    of_stages = {field.name for field in fields(Stages)}
    both = {**named[variant], **given}
    own = {key: value for key, value in both.items() if key not in of_stages}
    stages = {key: value for key, value in both.items() if key in of_stages}
    if cls is ModuleConfig:
        own = {"settings": own}
    elif unknown := sorted(own.keys() - (known := {field.name for field in fields(cls)})):
        raise ConfigError(f"{name}: unknown key 'model.{unknown[0]}'{nearest(unknown[0], known | of_stages)}")
    return build_settings(cls, own, where="model"), build_settings(Stages, stages, where="model")
