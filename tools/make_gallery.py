"""Draw docs/figures/gallery_*.png, one sample of every problem: `python tools/make_gallery.py`."""

from __future__ import annotations

from pathlib import Path

import spectrakan as sk
from spectrakan.data.climate import load_climate
from spectrakan.report.figures import save_figure

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
SOLVED = {
    "cns1d": slice(None),
    "diffusion_reaction1d": slice(21),
    "darcy2d": slice(None),
    "shallow_water2d": slice(None),
    "droplet2d": slice(11, 52),
}
"""Problems, and the frames in which most happens."""

if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    for name, frames in SOLVED.items():
        data = sk.generate(name, num_samples=1, seed=1)
        data = data.between(*frames.indices(len(data.times))[:2])
        save_figure(data.plot(sample=0), FIGURES / f"gallery_{name}.png")
    save_figure(load_climate(None).select(slice(1)).plot(sample=0), FIGURES / "gallery_climate2d.png")
