"""Exported files against the operator, each in processes of their own: the tests' shape checks would add guards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import spectrakan as sk

MAKE = """
import sys, torch
import spectrakan as sk
from spectrakan.export import export_model

def made(name, dims, steady=False, params=0, **settings):
    torch.manual_seed(0)
    facts = sk.OperatorSignature(space_dims=dims, history=1 if steady else 2, in_channels=2, out_channels=2,
                                 num_params=params, steady=steady, boundary=("periodic", "wall")[:dims])
    model = sk.build_model(name, facts, **settings)
    space, count = (20, 26)[:dims], 3 if steady else 4
    frames = 300 + 20 * torch.randn(6, 4, *space, 2)
    model.fit_statistics(frames[:, : facts.history], frames[:, facts.history : count - 1 + steady],
                         torch.rand(6, params) if params else None)
    return model
"""
KEPT = (
    MAKE
    + """
model = made("spectrakan", 2, params=1, width=8, num_layers=2)
for kind in ("torch-export", "onnx"):
    found = export_model(model, f"model{'.onnx' if kind == 'onnx' else '.pt2'}", kind)
    assert len(found.errors) == 2 and max(found.errors.values()) < 1e-5, found
x, p = 300 + 20 * torch.randn(2, 2, 31, 16, 2), torch.rand(2, 1)
torch.save({"x": x, "params": p, "y": model(x, p).detach()}, "case.pt")
"""
)
LOADED = """
import sys
sys.modules["spectrakan"] = None          # importing it raises
import numpy, onnxruntime, torch
case = torch.load("case.pt")
y = torch.export.load("model.pt2").module()(x=case["x"], params=case["params"])
assert (y - case["y"]).abs().max() < 1e-5 * 300, (y - case["y"]).abs().max()
session = onnxruntime.InferenceSession("model.onnx")
y, = session.run(["y"], {"x": case["x"].numpy(), "params": case["params"].numpy()})
assert numpy.abs(y - case["y"].numpy()).max() < 1e-5 * 300
assert [entry.shape for entry in session.get_inputs()] == [["batch", 2, "x", "y", 2], ["batch", 1]]
assert session.get_modelmeta().custom_metadata_map["model"] == "spectrakan"
"""
REFUSED = (
    MAKE
    + """
from pathlib import Path
import torch.nn as nn

class Branching(nn.Module):
    def forward(self, x, params=None, grid=None):
        return x[:, -1] if float(x.sum()) > 0 else -x[:, -1]

class Dishonest(nn.Module):
    def forward(self, x, params=None, grid=None):
        return x[:, -1] * (2.0 if torch.compiler.is_exporting() else 1.0)

sk.register_model("branching", lambda signature: Branching())
sk.register_model("dishonest", lambda signature: Dishonest())
for name, error, words in (("branching", sk.errors.ConfigError, "cannot be exported as torch-export"),
                           ("dishonest", sk.errors.RunError, "differs from the operator")):
    try:
        export_model(made(name, 1, predict="direct", noise_level=0.0), "refused.pt2")
        raise SystemExit(f"{name} was exported")
    except error as problem:
        assert words in str(problem), problem
assert not list(Path().iterdir()), list(Path().iterdir())
"""
)
FORMATS = (
    MAKE
    + """
import copy
from pathlib import Path
from spectrakan import export

name, dims, settings = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
model = made(name, dims, **settings)
still = export._Physical(copy.deepcopy(model).eval().requires_grad_(False), None)
with export._quiet():
    program = export._traced(still)                              # once: it takes half of the time
    for kind, ending in export.ENDINGS.items():
        loaded = export.WRITERS[kind](program, Path(f"{kind}{ending}"), {"model": name})
        found = dict(export._differences(still, loaded))
        assert len(found) == 2 and max(found.values()) < 1e-5, (kind, found)
        print(kind, found)
"""
)
"""The steps of `export_model` with one trace for all formats."""
FURTHER = (
    MAKE
    + """
settings = {"width": 8, "coarse_num_layers": 2, "conditioning": "both", "params": 2, "multiplicative_readout": True}
for model in (made("spectrakan", 2, **settings), made("spectrakan", 2, steady=True, width=8)):
    assert max(export_model(model, "more.onnx", "onnx", force=True).errors.values()) < 1e-5
globe = sk.Grid.latitude_longitude(torch.linspace(-80, 80, 9), torch.arange(12) * 30.0)
model = made("spectrakan", 2, steady=True, width=8)
found = export_model(model, "globe.onnx", "onnx", grid=globe)
assert found.cells == (9, 12) and set(found.errors) == {"(1, 1, 9, 12, 2)", "(5, 1, 9, 12, 2)"}, found
"""
)


def run(program: str, folder: Path, *words: str) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    asked = [sys.executable, "-W", "ignore", "-c", program, *words]
    done = subprocess.run(asked, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_files_run_without_the_library_at_sizes_they_were_not_traced_at(tmp_path: Path):
    run(KEPT, tmp_path)
    run(LOADED, tmp_path)


def test_what_cannot_be_exported_is_refused_with_the_reason_and_leaves_no_file(tmp_path: Path):
    run(REFUSED, tmp_path)


def test_a_shipped_model_keeps_its_results_under_the_optimisations_of_onnxruntime(tmp_path: Path):
    program = """
import spectrakan as sk
from spectrakan.export import export_model
found = export_model(sk.from_pretrained("cns1d-small"), "gas.onnx", "onnx")
assert max(found.errors.values()) < 1e-5, found
"""
    run(program, tmp_path)


@pytest.mark.slow
def test_the_documents_ten_lines_load_compiled_code_without_the_library(tmp_path: Path):
    one_field = MAKE.replace("channels=2", "channels=1").replace("*space, 2)", "*space, 1)")
    compiled = 'export_model(made("spectrakan", 1, width=4, num_layers=1), "model.pt2", "aotinductor")'
    run(one_field + compiled, tmp_path)
    text = (Path(__file__).resolve().parents[2] / "docs/how-to/export.md").read_text()
    lines = text.split("torch alone loads it:")[1].split("```")[1]
    assert len(lines.strip().splitlines()) <= 10
    alone = "import sys\nsys.modules['spectrakan'] = None\nsys.argv = ['', 'model.pt2']\n"
    assert run(alone + lines, tmp_path) == "(7, 50, 1)\n"


@pytest.mark.slow
@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("spectrakan", {"width": 8, "num_layers": 2}),
        ("spectrakan", {"width": 8, "num_layers": 2, "conditioning": "readout", "pool": "center+mean+std"}),
        ("fno", {"width": 8, "num_modes": 6, "num_layers": 2}),
        ("ffno", {"width": 8, "num_layers": 2}),
    ],
    ids=["spectrakan", "spectrakan-readout", "fno", "ffno"],
)
def test_every_format_agrees_at_sizes_it_was_not_traced_at(tmp_path: Path, name: str, settings: dict, dims: int):
    told = run(FORMATS, tmp_path, name, str(dims), repr(settings))
    print(told)
    assert [line.split()[0] for line in told.splitlines()] == ["torch-export", "onnx", "aotinductor"]


@pytest.mark.slow
def test_coarse_branches_parameters_steady_maps_and_the_globe(tmp_path: Path):
    run(FURTHER, tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("model.onnx", "onxx", "did you mean 'onnx'"),
        ("model.pt2", "onnx", "ends in '.onnx'"),
        ("there.pt2", "torch-export", "exists already"),
    ],
)
def test_requests_that_make_no_sense(tmp_path: Path, name: str, kind: str, words: str):
    from spectrakan.export import export_model

    (tmp_path / "there.pt2").touch()
    signature = sk.OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    with pytest.raises(sk.errors.ConfigError, match=words):
        export_model(sk.build_model("persistence", signature), tmp_path / name, kind)


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from spectrakan.export import export_model

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    signature = sk.OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    with pytest.raises(sk.errors.ConfigError, match=r"pip install 'spectrakan\[export\]'"):
        export_model(sk.build_model("persistence", signature), tmp_path / "model.onnx", "onnx")
