"""Sizes of the baselines that tests can afford."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, dict[str, Any]] = {
    "unet": {"width": 12},
    "fno": {"width": 16, "num_modes": 8},
    "ffno": {"width": 32, "num_modes": 12, "num_layers": 4, "mlp_ratio": 2, "gain": 1.0},
    "lno": {"width": 8, "num_modes": 4},
    "transolver": {"width": 32, "num_layers": 2, "num_heads": 4, "num_slices": 8},
    "local_fno": {"width": 16, "num_modes": 8},
    "deepokan": {"num_centres": 8},
    "cvit": {
        "width": 64, "num_layers": 2, "num_heads": 4, "decoder_width": 64, "decoder_heads": 4, "patch": 8,
        "cells": 64, "latent_cells": 16, "latent_width": 32, "sharpness": 400.0,
    },
}  # fmt: skip
