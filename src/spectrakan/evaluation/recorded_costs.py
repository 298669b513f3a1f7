"""What a training step of each model costs over FNO's, as measured once, so that a list need not take a minute.

`step_cost.step_seconds` of all models at their default sizes, one sample at each task's grid, one thread of an AMD
EPYC with AVX2, torch 2.13.0. CPU time of other work on the machine is not in it, but its use of caches is: read the
ratios to about a third. `spectrakan models --measure` says what they are elsewhere.
"""

from __future__ import annotations

RECORDED_TASKS = ("cns1d", "diffusion_reaction1d", "darcy2d", "shallow_water2d", "droplet2d", "climate2d")
"""What the columns are."""

RECORDED_COSTS: dict[str, tuple[float, ...]] = {
    "spectrakan": (3.4, 2.5, 2.2, 1.8, 1.7, 2.0),
    "amfno": (3.3, 1.7, 2.0, 1.4, 1.1, 1.6),
    "unet": (2.8, 3.1, 3.3, 2.8, 2.4, 2.9),
    "fno": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "ffno": (18.0, 20.0, 21.0, 17.0, 11.0, 16.0),
    "lno": (1.1, 1.5, 4.6, 3.4, 1.6, 2.4),
    "transolver": (8.5, 13.0, 25.0, 17.0, 7.8, 14.0),
    "local_fno": (2.6, 2.2, 2.5, 2.0, 1.3, 1.8),
    "deepokan": (2.8, 3.9, 13.0, 9.9, 3.2, 7.0),
    "cvit": (9.1, 7.1, 7.4, 6.1, 3.2, 5.0),
    "deeponet": (0.48, 0.51, 0.76, 0.68, 0.28, 0.51),
    "persistence": (0.03, 0.02, 0.01, 0.04, 0.01, 0.01),
    "climatology": (0.05, 0.05, 0.01, 0.04, 0.02, 0.01),
    "ridge": (0.06, 0.05, 0.04, 0.05, 0.03, 0.05),
}
"""CPU time of forward and backward pass over FNO's, by model, in the order of `RECORDED_TASKS`."""
