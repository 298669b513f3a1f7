"""Every equation by its name."""

from spectrakan.pde import cns1d, darcy2d, diffusion_reaction1d, droplet2d, shallow_water2d
from spectrakan.pde.equation import Equation

EQUATIONS: dict[str, Equation] = {
    "cns1d": cns1d.EQUATION,
    "diffusion_reaction1d": diffusion_reaction1d.EQUATION,
    "darcy2d": darcy2d.EQUATION,
    "shallow_water2d": shallow_water2d.EQUATION,
    "droplet2d": droplet2d.EQUATION,
}
