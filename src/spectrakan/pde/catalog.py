"""Every equation by its name."""

from __future__ import annotations

from spectrakan.pde import cns1d, diffusion_reaction1d
from spectrakan.pde.equation import Equation

EQUATIONS: dict[str, Equation] = {
    "cns1d": cns1d.EQUATION,
    "diffusion_reaction1d": diffusion_reaction1d.EQUATION,
}
