"""Draw docs/figures/gallery_*.png, one sample of every problem: `python tools/make_gallery.py`."""

from __future__ import annotations

from pathlib import Path

import spectrakan as sk
from spectrakan.data.climate import load_climate
from spectrakan.report.figures import save_figure

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
SOLVED = ("cns1d", "diffusion_reaction1d", "darcy2d", "shallow_water2d", "droplet2d")

if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    for name in SOLVED:
        save_figure(sk.generate(name, num_samples=1, seed=1).plot(sample=0), FIGURES / f"gallery_{name}.png")
    save_figure(load_climate(None).select(slice(1)).plot(sample=0), FIGURES / "gallery_climate2d.png")
