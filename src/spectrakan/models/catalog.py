"""All operators by name, and the named combinations of their choices."""

from __future__ import annotations

from typing import Any

from spectrakan.config import build_settings
from spectrakan.errors import ConfigError, nearest
from spectrakan.fields import OperatorSignature
from spectrakan.models.amfno import AMFNO, AMFNOConfig
from spectrakan.models.climatology import Climatology, ClimatologyConfig
from spectrakan.models.cvit import CViT, CViTConfig
from spectrakan.models.deepokan import DeepOKAN, DeepOKANConfig
from spectrakan.models.deeponet import DeepONet, DeepONetConfig
from spectrakan.models.ffno import FFNO, FFNOConfig
from spectrakan.models.fno import FNO, FNOConfig
from spectrakan.models.lno import LNO, LNOConfig
from spectrakan.models.local_fno import LocalFNO, LocalFNOConfig
from spectrakan.models.operator import Operator
from spectrakan.models.persistence import Persistence, PersistenceConfig
from spectrakan.models.ridge import Ridge, RidgeConfig
from spectrakan.models.spectrakan import SpectraKAN, SpectraKANConfig
from spectrakan.models.transolver import Transolver, TransolverConfig
from spectrakan.models.unet import UNet, UNetConfig

MODELS: dict[str, tuple[type[Operator], type[Any]]] = {
    "spectrakan": (SpectraKAN, SpectraKANConfig),
    "amfno": (AMFNO, AMFNOConfig),
    "unet": (UNet, UNetConfig),
    "fno": (FNO, FNOConfig),
    "ffno": (FFNO, FFNOConfig),
    "lno": (LNO, LNOConfig),
    "transolver": (Transolver, TransolverConfig),
    "local_fno": (LocalFNO, LocalFNOConfig),
    "deepokan": (DeepOKAN, DeepOKANConfig),
    "cvit": (CViT, CViTConfig),
    "deeponet": (DeepONet, DeepONetConfig),
    "persistence": (Persistence, PersistenceConfig),
    "climatology": (Climatology, ClimatologyConfig),
    "ridge": (Ridge, RidgeConfig),
}
"""Operator and settings class by name."""

_SMALL_TRANSOLVER = {"width": 32, "num_layers": 2, "num_heads": 4, "num_slices": 8}
_DARCY_TRANSOLVER: dict[str, Any] = {
    "width": 128,
    "num_layers": 8,
    "num_slices": 64,
    "projection": "convolution",
    "positions": "distances",
}
_SMALL_DEEPOKAN = {"num_centres": 8}
_SMALL_CVIT = {"width": 64, "num_layers": 2, "num_heads": 4, "decoder_width": 64, "decoder_heads": 4}
_SMALL_LATTICE = {"patch": 8, "cells": 64, "latent_cells": 16, "latent_width": 32, "sharpness": 400.0}
_SMALL_DEEPONET = {"width": 64, "num_features": 64}
_PAPER_TRUNK: dict[str, Any] = {
    "block": "plain",
    "excitation_start": 0.5,
    "basis": "fourier",
    "mixing": "axial",
    "coarse_mixing": "axial",
    "memory_decay": 1.0,
    "coordinates": "all",
    "coarser_cells": "direct",
    "answer_error": 0.0,
    "predict": "direct",
}

_ONE_AXIS: dict[str, Any] = {"num_modes": 24, "coarse_num_layers": 2, "coarse_mixing": "axial"}
_STEADY: dict[str, Any] = {"answer_error": 0.1}
_EVOLVING: dict[str, Any] = {
    "block": "residual",
    "excitation": False,
    "coarse": False,
    "coordinates": "edged",
    "answer_error": 0.01,
}
_SEVERAL_AXES_EVOLVING: dict[str, Any] = {
    "num_modes": 20,
    "activation": "relu",
    "factor": 2,
    "memory_decay": 1.0,
}

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "spectrakan": {
        "default": {},
        "paper": {
            **_PAPER_TRUNK,
            "extension": "zero",
            "attention_scaling": "root",
            "num_heads": 1,
            "pool": "center",
            "token": "kan",
            "fusion": "readout",
            "token_answers": False,
            "field_factors": False,
            "gate_conditioning": "none",
        },
    },
    "amfno": {"default": {}, "paper": _PAPER_TRUNK},
    "unet": {"default": {}, "small": {"width": 12}},
    "fno": {"default": {}, "small": {"width": 16, "num_modes": 8}},
    "ffno": {"default": {}, "small": {"width": 32, "num_modes": 12, "num_layers": 4, "factor": 2, "gain": 1.0}},
    "lno": {"default": {}, "small": {"width": 8, "num_modes": 4}},
    "transolver": {"default": {}, "darcy": _DARCY_TRANSOLVER, "small": _SMALL_TRANSOLVER},
    "local_fno": {"default": {}, "small": {"width": 16, "num_modes": 8}},
    "deepokan": {"default": {}, "small": _SMALL_DEEPOKAN},
    "cvit": {"default": {}, "small": {**_SMALL_CVIT, **_SMALL_LATTICE}},
    "deeponet": {"default": {}, "small": _SMALL_DEEPONET},
}
"""Named combinations of choices; `paper` is the text to the letter, `darcy` what was published for that task alone,
`small` a size for work on a CPU."""


def variant_choices(name: str, variant: str, *, space_dims: int, evolves: bool) -> dict[str, Any]:
    """The choices of a variant; those of `default` depend on what is learnt, as validation chose (docs/results.md).

    A step in time is a small change, which residual blocks begin with; a steady map is none. Where fields evolve, a
    wider fine branch serves better than a coarse one for the same time. On one axis more modes are cheap, joint modes
    are the same as axial ones, the token answers directly what all cells share, and fields have factors of their own.
    A step in time comes nearer to the truth than a steady answer, and its gates are told so.
    """
    if name not in {"spectrakan", "amfno"} or variant != "default":
        return VARIANTS.get(name, {}).get(variant, {})
    if not evolves:
        return _STEADY | (_ONE_AXIS if space_dims == 1 else {})
    has_token = name == "spectrakan"
    if space_dims == 1:
        by_token = {"token_answers": True, "field_factors": True} if has_token else {}
        return _ONE_AXIS | _EVOLVING | {"factor": 1} | by_token
    return _EVOLVING | _SEVERAL_AXES_EVOLVING | ({"attention_scaling": "width"} if has_token else {})


def build_model(name: str, signature: OperatorSignature, *, variant: str = "default", **choices: Any) -> Operator:
    """Build an operator by name for a signature; choices beyond the variant's are given by name.

    >>> facts = OperatorSignature(space_dims=2, history=1, in_channels=3, out_channels=3)
    >>> model = build_model("spectrakan", facts, width=16, num_modes=8)
    >>> model.config.width, model.config.num_layers
    (16, 4)
    """
    if name not in MODELS:
        raise ConfigError(f"unknown model '{name}'{nearest(name, MODELS)}")
    named = VARIANTS.get(name, {"default": {}})
    if variant not in named:
        raise ConfigError(f"model '{name}' has no variant '{variant}'{nearest(variant, named)}")
    operator, config_class = MODELS[name]
    named_choices = variant_choices(name, variant, space_dims=signature.space_dims, evolves=signature.evolves)
    config = build_settings(config_class, {**named_choices, **choices}, where=f"model {name}")
    return operator(signature, config)
