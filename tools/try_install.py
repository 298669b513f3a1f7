"""Install the built wheel with each extra in an environment of its own and run a command that needs the extra.

    python tools/try_install.py [WHEEL] [--only EXTRA ...] [--record FILE]

The plain package is installed into a new environment; every extra is added to a copy of that one, so that no extra
sees another's packages. All lie in temporary folders and are removed. Versions are those of constraints.txt. The
outcome of every extra is printed, and written to FILE as JSON; the exit status is the number of extras that failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = "from pathlib import Path\n"
SHIPPED = """
import torch, spectrakan as sk
model = sk.from_pretrained("droplet2d-small")
water = torch.zeros(1, 1, 32, 32, 3); water[..., 0] = 1
assert abs(float(model(water)[..., 0].mean()) - 1) < 0.01
"""
SERVE = """
import re, subprocess, sys, urllib.request
asked = [sys.executable, "-m", "spectrakan", "serve", "--no-browser", "--port", "0"]
serving = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
try:
    address = re.search(r"http://\\S+", serving.stdout.readline()).group(0)
    page = urllib.request.urlopen(address).read().decode()
    assert "Touch the water" in page and b"ok" in urllib.request.urlopen(address + "healthz").read()
finally:
    serving.terminate()
    serving.wait(30)
"""
WAVES = """
import numpy as np, spectrakan as sk
t, x, start = np.arange(8) / 40, np.arange(32) / 32, np.random.default_rng(0).random((12, 1, 1))
u = np.sin(2 * np.pi * (x - t[:, None] + start))[..., None]
data = sk.Trajectories.from_arrays(u, fields=("u",), times=t, boundary=("periodic",), name="waves")
"""
TRACK = """
from pathlib import Path
sk.train(data=data, output="run", overrides=["training.epochs=2", "model.width=4", "runtime.track=[KIND]"])
"""
EXTRAS = {
    "": SHIPPED,
    "climate": WAVES + 'data.to_xarray().to_netcdf("w.nc", engine="h5netcdf")\nassert Path("w.nc").stat().st_size',
    "cluster": """
import subprocess, sys
asked = [sys.executable, "-m", "spectrakan", "generate", "diffusion_reaction1d", "-n", "4", "--cluster", "local:2"]
subprocess.run([*asked, "--output", "made.h5"], check=True)
import h5py
assert len(h5py.File("made.h5"))
""",
    "serve": SHIPPED + SERVE,
    "track": WAVES + TRACK.replace("KIND", "tensorboard") + 'assert list(Path("run").rglob("events.out.tfevents*"))',
    "wandb": WAVES + TRACK.replace("KIND", "wandb") + 'assert list(Path("run").rglob("*.wandb"))',
    "mlflow": WAVES + TRACK.replace("KIND", "mlflow") + 'assert list(Path("mlruns").rglob("metrics/loss/epoch"))',
    "hub": 'import fsspec, huggingface_hub\nfrom spectrakan.models.hub import model_card\n'
    + SHIPPED
    + 'assert "# spectrakan" in model_card(model)',
    "export": SHIPPED
    + 'from spectrakan.export import export_model\nfound = export_model(model, "m.onnx", "onnx")\n'
    + "assert max(found.errors.values()) < 1e-5",
    "gcm": "import jax, jcm, dinosaur, spectrakan",
    "docs": "import mkdocs, material, mkdocstrings, mkdocs_jupyter",
    "bench": "import neuralop, kan, spectrakan",
    "dev": "import pytest, ruff, mypy, playwright, spectrakan, starlette, onnx, distributed",
}  # fmt: skip
"""What is run for each extra, as a program in an empty folder; "" is the plain package, whose demo is run too."""


def attempt(extra: str, wheel: Path, plain: Path | None = None) -> dict[str, object]:
    """Make an environment, or copy `plain`; install and run; what happened, with the end of what a failure said."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spectrakan-install-") as place:
        environment, folder = Path(place) / "env", Path(place) / "work"
        folder.mkdir()
        if plain is not None:
            shutil.copytree(plain, environment, symlinks=True, copy_function=os.link)
        if failure := install(environment, extra, wheel) or run(environment, folder, "-c", HEAD + EXTRAS[extra]):
            return {"works": False, **failure, "seconds": round(time.monotonic() - begin)}
        if not extra and (failure := run(environment, folder, "-m", "spectrakan", "demo")):
            return {"works": False, **failure, "seconds": round(time.monotonic() - begin)}
    return {"works": True, "seconds": round(time.monotonic() - begin)}


def install(environment: Path, extra: str, wheel: Path) -> dict[str, object] | None:
    """The wheel with an extra in an environment, which is made if it is not there; None if it went well."""
    if not environment.is_dir():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    asked = f"spectrakan{f'[{extra}]' if extra else ''} @ {wheel.resolve().as_uri()}"
    quick = ["--quiet", "--no-cache-dir", "--no-compile", "-c", str(ROOT / "constraints.txt")]
    return run(environment, environment, "-m", "pip", "install", *quick, asked)


def run(environment: Path, folder: Path, *words: str) -> dict[str, object] | None:
    """Run the environment's Python in a folder, without this project's paths; None if it went well."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    kept |= {"OMP_NUM_THREADS": "1", "WANDB_MODE": "offline"}
    kept |= {"MLFLOW_TRACKING_URI": (folder / "mlruns").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    asked = [str(environment / "bin/python"), *words]
    done = subprocess.run(asked, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    said = (done.stderr or done.stdout).replace(str(environment.parent), "")[-600:]
    return {"step": list(words[:2]), "said": said} if done.returncode else None


def main() -> int:
    """Try all extras, or those that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheel", nargs="?", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(EXTRAS))
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if declared.keys() ^ (EXTRAS.keys() - {""}):
        raise SystemExit(f"extras without a check, or without a declaration: {declared.keys() ^ EXTRAS.keys()}")
    wheel = given.wheel or next((ROOT / "dist").glob("*.whl"))
    found = {}
    with tempfile.TemporaryDirectory(prefix="spectrakan-plain-") as place:
        plain = Path(place) / "env"
        if failure := install(plain, "", wheel) or run(plain, Path(place), "-c", SHIPPED):
            raise SystemExit(f"the plain package does not work: {failure}")
        for extra in EXTRAS if given.only is None else given.only:
            found[extra or "(none)"] = attempt(extra, wheel, plain)
            print(extra or "(none)", found[extra or "(none)"], flush=True)
    if given.record:
        about = {"wheel": wheel.name, "python": platform.python_version(), "extras": found}
        given.record.write_text(json.dumps(about, indent=1) + "\n")
    return sum(not outcome["works"] for outcome in found.values())


if __name__ == "__main__":
    sys.exit(main())
