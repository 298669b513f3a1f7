"""Commands of README and site are run as they are written, on small data; Python blocks are run as doctests."""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import h5py
import numpy as np
import pytest
import yaml

import spectrakan as sk
from spectrakan.data import write_dataset

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/how-to").glob("*.md"))]
COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:torchrun|spectrakan|python -m) ")
ELSEWHERE = {
    r"spectrakan download": "the network; tests/unit/data/test_download.py has a server of its own",
    r"spectrakan serve": "test_the_commands_that_serve_answer",
    r"spectrakan demo": "tests/integration/test_demo.py",
    r"track=\[(wandb|mlflow)\]": "tools/try_install.py",
    r"experiments (all|main) .*(--jobs|--cluster)": "tests/integration/test_reproduce.py, test_cluster.py",
    r"experiments (figures|--validation)": "tests/integration/test_reproduce.py",
}
"""Commands that need what no test machine has, or that another test runs: a pattern and where or why."""
SMALLER = {
    r"training\.epochs=\d+": "training.epochs=1",
    r"--epochs \d+": "--epochs 2",
    r"--budget long": "",
    r"-n \d+": "-n 4",
    r"--nnodes 4 --nproc-per-node 8": "--nnodes 1 --nproc-per-node 2",
    r"--nproc-per-node 8": "--nproc-per-node 2",
    r"HOST:29500": "localhost:0",
    r"--device cuda": "--device cpu",
    r"tcp://HOST:8786": "local:2",
    r"space_parallel=4": "space_parallel=2",
    r"local:8": "local:2",
    r"\bTASK\b": "darcy2d",
    r"\b[AB]/evaluations": "RUN/evaluations",
    r"experiments all --scale paper": "experiments main --scale paper",
    r"--resolution 32 --samples 1": "--resolution 16 --samples 1 --points 1 --starts 2 --pairs 4",
}
"""What is changed so that a command takes seconds on one machine without a GPU, and names that a reader replaces."""
SMALL = "--budget smoke training.epochs=1"
PROBLEM = {"docs/how-to/train.md": "darcy2d"}
"""Whose samples the files of a document hold; diffusion and reaction where nothing is said."""


def blocks(path: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w*)\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def commands(path: Path) -> list[str]:
    """The lines of a document's blocks that start a program of ours and can be run here."""
    lines = [line for kind, text in blocks(path) if not kind for line in text.replace("\\\n", " ").splitlines()]
    return [
        line for line in lines if COMMAND.match(line) and not any(re.search(pattern, line) for pattern in ELSEWHERE)
    ]


def smaller(line: str) -> str:
    line = re.sub(r"\s+#.*$", "", line)
    for pattern, other in SMALLER.items():
        line = re.sub(pattern, other, line)
    if re.search(r"spectrakan train (?!--resume|run\.yaml)", line):
        more = SMALL if "training.epochs" not in line else SMALL.split(" training")[0]
        more += "" if "--data" in line else " data.num_samples=8 data.test_samples=2"
        before, redirection, after = line.partition(" > ")
        line = f"{before} {more}{redirection}{after}"
    return line


def shell(line: str, folder: Path) -> str:
    """What a command prints; a failure tells its words."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), str(folder)]),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
    }
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
    return done.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that documents start from."""
    folder = tmp_path_factory.mktemp("trained")
    few = f"{SMALL} data.num_samples=8 data.test_samples=2"
    parts = "data.split.train=0.4 data.split.validation=0.1 data.split.calibration=0.25 data.split.test=0.25"
    held_out = f"{SMALL} data.num_samples=40 {parts}"
    shell(f"spectrakan train diffusion_reaction1d --output RUN {held_out}", folder)
    shell(f"spectrakan train diffusion_reaction1d --model fno --output runs/heat-fno-0 {few}", folder)
    shell(f"spectrakan train darcy2d {few}", folder)
    shell(f"spectrakan train cns1d {few} data.resolution=32 model.width=8", folder)  # certified by a document
    for name in ("heat-spectrakan-0", "mine-0", "mine-1"):
        shutil.copytree(folder / "RUN", folder / "runs" / name)
    (folder / "results").symlink_to(ROOT / "results")
    return folder


def write_files(folder: Path, problem: str) -> None:
    """Data sets under the names that documents use."""
    steady = problem == "darcy2d"
    data = sk.generate(problem, num_samples=8, resolution=32, seed=0)
    for name in ("mine", "waves", "new", "train", "test", "start"):
        write_dataset(folder / f"{name}.h5", data)
    if steady:
        return
    data.select(slice(0, 1)).to_xarray().isel(sample=0).to_netcdf(folder / "era5.nc", engine="h5netcdf")
    entry = {"array": "u", "axes": ["sample", "time", "x"], "fields": ["u"]}
    for name in ("mine", "new"):
        np.savez(folder / f"{name}.npz", u=np.asarray(data.values)[..., 0], x=data.grid.coordinates[0], t=data.times)
        mapping = {"values": [entry], "coordinates": {"x": "x"}, "times": "t", "boundary": ["periodic"]}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(mapping))
    rng = np.random.default_rng(0)
    with h5py.File(folder / "2D_rdb_NA_NA.h5", "w") as file:
        for number in range(3):
            file[f"{number:04d}/data"] = rng.random((5, 8, 8, 1), dtype=np.float32)
            for axis, count in (("x", 8), ("y", 8), ("t", 5)):
                file[f"{number:04d}/grid/{axis}"] = np.linspace(0, 1, count, dtype=np.float32)


def write_package(folder: Path) -> None:
    """The model of how-to/own_model.md as an installed package with the entry point that the page shows."""
    path = ROOT / "docs/how-to/own_model.md"
    sources = [example.source for example in doctest.DocTestParser().get_examples(path.read_text())]
    wanted = ("import ", "from ", "class Smooth", "def smooth")
    (folder / "my_package.py").write_text("".join(text for text in sources if text.startswith(wanted)))
    (text,) = (content for kind, content in blocks(path) if kind == "toml")
    points = tomllib.loads(text)["project"]["entry-points"]["spectrakan.models"]
    info = folder / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    lines = "".join(f"{name} = {place}\n" for name, place in points.items())
    (info / "entry_points.txt").write_text(f"[spectrakan.models]\n{lines}")


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if commands(path)], ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_commands_of_a_document_run(path: Path, trained: Path, tmp_path: Path):
    name = str(path.relative_to(ROOT))
    folder = tmp_path / "work"
    shutil.copytree(trained, folder, symlinks=True)
    write_files(folder, PROBLEM.get(name, "diffusion_reaction1d"))
    write_package(folder)
    for line in commands(path):
        made = re.search(r"--output (\S+)", line)
        if made or re.search(r"spectrakan train (?!--resume|.*--output)", line):
            shutil.rmtree(folder / (made[1] if made else "runs/darcy2d-spectrakan-0"), ignore_errors=True)
        print(smaller(line))
        print(shell(smaller(line), folder)[-300:])


def test_the_commands_that_serve_answer(trained: Path, tmp_path: Path):
    """Each on a free port without a browser; the request of the document is sent to the last one."""
    path, folder = ROOT / "docs/how-to/serve.md", tmp_path / "work"
    shutil.copytree(trained, folder, symlinks=True)
    write_files(folder, "diffusion_reaction1d")
    asked = {"model": "droplet2d-small", "inputs": [[[[[1.0, 0.0, 0.0]] * 16] * 16]], "horizon": 3}
    (folder / "request.json").write_text(json.dumps(asked))
    text = "".join(content for _, content in blocks(path))
    (curl,) = re.findall(r"^curl .*$", text, re.MULTILINE)
    for line in re.findall(r"^spectrakan serve.*?(?=\s+#|$)", text, re.MULTILINE):
        words = [*line.replace(" ...", " runs/heat-fno-0").split()[1:], "--no-browser", "--port", "0"]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        serving = subprocess.Popen(
            [sys.executable, "-m", "spectrakan", *words], cwd=folder, env=environment, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        try:
            assert serving.stdout is not None
            found = re.search(r"http://[^ /]+", serving.stdout.readline())
            assert found is not None, line
            shown = json.loads(shell(f"curl -s {found[0]}/api/v1/models", folder))
            runs = {name: entry["samples"] for name, entry in shown.items() if entry["kind"] == "run"}
            assert list(runs) == [word.rpartition("/")[2] for word in words if word in ("RUN", "runs/heat-fno-0")]
            assert "--data" not in words or runs == {"RUN": 8}, "all samples of the file"
            answer = json.loads(shell(curl.replace("http://127.0.0.1:8000", found[0]), folder))
            assert np.allclose(answer["values"], [1, 0, 0], atol=0.02), "still water stays still"
        finally:
            serving.terminate()
            serving.communicate(timeout=30)


def test_the_job_script_runs_with_a_cluster_of_one_machine(tmp_path: Path):
    """`srun` starts its command here and `scontrol` names this machine."""
    (script,) = (text for _, text in blocks(ROOT / "docs/how-to/scale.md") if text.startswith("#SBATCH"))
    for name, text in (("srun", 'exec "$@"'), ("scontrol", "echo localhost")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    lines = smaller(script.replace("\\\n", " ").replace(":29500", ":0").strip())
    shell(f"export PATH={tmp_path}:$PATH SLURM_NNODES=1 SLURM_NODELIST=localhost\n{lines}", tmp_path)
    assert json.loads((tmp_path / "RUN/record.json").read_text())["provenance"]["processes"] == 2


def test_blocks_without_a_language_are_commands_formulas_or_known_programs():
    """A block that no test runs is named here, with what stands for it."""
    known = {
        "f = F_fine(u)": "a formula",
        "pip install": "tools/try_install.py",
        "curl -H": "test_the_commands_that_serve_answer",
        "#SBATCH": "test_the_job_script_runs_with_a_cluster_of_one_machine",
        "from dask_jobqueue": "needs SLURM; tests/integration/test_cluster.py has a cluster of its own",
        "import sys\nimport torch\n": "tests/unit/test_export.py",
    }
    for path in DOCUMENTS:
        for kind, content in blocks(path):
            first = content.splitlines()[0]
            if kind:
                assert kind in {"python", "yaml", "toml"}, f"{path}: {kind}"
            else:
                assert COMMAND.match(first) or content.startswith(tuple(known)), f"{path}: {first}"
