"""Write the static page: models inside the browser by onnxruntime-web, solvers in JavaScript, no server.

    python tools/make_page.py [build/page]

onnxruntime-web is taken from npm with `npm pack`, with its licence (MIT) if it brings it; everything else is made
here. Any static host can serve the folder.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import onnx

import spectrakan as sk
from spectrakan.export import export_model
from spectrakan.models.pretrained import PRETRAINED, shipped
from spectrakan.serve.app import STATIC

RUNTIME = "onnxruntime-web@1.30.0"
WANTED = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


def write_page(target: Path) -> None:
    """Copy the page, put the browser's own backend in place of the server's, and export every shipped model."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(STATIC, target)
    for path in (STATIC.parent / "page").glob("*.js"):
        shutil.copy(path, target / path.name)
    for path in (target / "runs.js", target / "404.html"):
        text = path.read_text()
        path.write_text(text.replace('href="/', 'href="'))
    (target / "models").mkdir()
    facts = {}
    for name in shipped():
        facts[name] = {"kind": "shipped", **json.loads((PRETRAINED / f"{name}.json").read_text())}
        made = export_model(sk.from_pretrained(name), target / "models" / f"{name}.onnx", "onnx")
        give_attention(made.path)
        print(f"{name}: {made.path.stat().st_size / 1e6:.2f} MB, differs by at most {max(made.errors.values()):.1e}")
    (target / "models.json").write_text(json.dumps(facts))
    take_runtime(target / "ort")


def give_attention(path: Path) -> None:
    """Make the only softmax, the token's weights over the cells, a second output `(batch, 1, cells)`."""
    model = onnx.load(path)
    weights = [node.output[0] for node in model.graph.node if node.op_type == "Softmax"]
    if len(weights) != 1:
        raise SystemExit(f"expected one softmax in {path.name}, found {len(weights)}")
    model.graph.node.append(onnx.helper.make_node("Identity", weights, ["attention"]))
    kind = onnx.helper.make_tensor_value_info("attention", onnx.TensorProto.FLOAT, ["batch", 1, "cells"])
    model.graph.output.append(kind)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def take_runtime(folder: Path) -> None:
    """The three files of onnxruntime-web that the page loads, and its licence."""
    folder.mkdir()
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["npm", "pack", "--silent", RUNTIME], cwd=place, check=True, stdout=subprocess.DEVNULL)
        archive = next(Path(place).glob("*.tgz")).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        for name in packed.getnames():
            if name in [f"package/dist/{wanted}" for wanted in WANTED] or name.lower().startswith("package/licen"):
                member = packed.extractfile(name)
                if member is not None:
                    (folder / Path(name).name).write_bytes(member.read())
    if missing := [name for name in WANTED if not (folder / name).is_file()]:
        raise SystemExit(f"{RUNTIME} lacks {', '.join(missing)}")


if __name__ == "__main__":
    write_page(Path(sys.argv[1] if len(sys.argv) > 1 else "build/page"))
