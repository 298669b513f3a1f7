"""Golden values of the baselines' published codes: `python tools/make_golden.py SOURCES [NAME ..]`.

SOURCES is a folder with checkouts of the authors' repositories under their own names (`fourierflow`,
`Laplace-Neural-Operator`, `Transolver`, `cvit`, `DyMixOp`); neuraloperator is the installed package. Their classes
are run as they are, on small sizes, with inputs and weights by the formula of `sequence`, and what they give is
written to `tests/parity/golden/NAME.json`. What keeps a module from running (CUDA calls, globals of a script, imports
that the class does not need) is replaced at run time. Needs einops, jax, flax and neuraloperator 2.0.0.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

GOLDEN = Path(__file__).parent.parent / "tests" / "parity" / "golden"
SIZE = 0.5
"""Largest weight."""
POLE_FREQUENCY = 5.0


def sequence(number: int, shape: Iterable[int]) -> np.ndarray:
    """sin(number + sqrt(2) j + j² / 100) at the flat indices j of a tensor; `number` 0 is the input."""
    shape = tuple(shape)
    index = np.arange(int(np.prod(shape)), dtype=np.float64)
    return np.sin(number + np.sqrt(2) * index + index**2 / 100).reshape(shape)


def weights(shapes: dict[str, list[int]]) -> dict[str, torch.Tensor]:
    """Weights of a golden file: the n-th tensor is `SIZE` times sequence n; complex ones end with an axis of 2."""
    return {name: SIZE * torch.from_numpy(sequence(n, shape)) for n, (name, shape) in enumerate(shapes.items(), 1)}


def stable_poles(values: torch.Tensor) -> torch.Tensor:
    """Poles with a negative real part, of weights `(.., 2)`: -(2 + first) + 5i second."""
    return torch.complex(-(2 + values[..., 0]), POLE_FREQUENCY * values[..., 1])


def centres(*cells: int) -> torch.Tensor:
    """Cell centres on the unit box, `(*cells, axes)`."""
    lines = [(torch.arange(count, dtype=torch.float64) + 0.5) / count for count in cells]
    return torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1)


def fill(module: nn.Module, stable: bool = False) -> dict[str, list[int]]:
    """Set all parameters by the formula; gives their names and shapes."""
    named = dict(module.named_parameters())
    shapes = {name: [*each.shape, *[2] * each.is_complex()] for name, each in named.items()}
    with torch.no_grad():
        for name, values in weights(shapes).items():
            if named[name].is_complex():
                poles = stable and "pole" in name
                values = stable_poles(values) if poles else torch.view_as_complex(values)
            named[name].copy_(values)
    return shapes


def write(name: str, source: str, cases: dict[str, dict[str, Any]]) -> None:
    """The golden file: where the code is from, and per case settings, names and shapes of weights, outputs."""
    lines = []
    for case, content in cases.items():
        outputs = {key: np.asarray(value, dtype=np.float64) for key, value in content.pop("outputs").items()}
        content["outputs"] = {
            key: {"shape": [*value.shape], "values": [float(f"{number:.9g}") for number in value.ravel()]}
            for key, value in outputs.items()
        }
        lines.append(f" {json.dumps(case)}: {json.dumps(content)}")
    GOLDEN.mkdir(exist_ok=True)
    path = GOLDEN / f"{name}.json"
    path.write_text('{"source": ' + json.dumps(source) + ', "cases": {\n' + ",\n".join(lines) + "\n}}\n")
    print(f"{path.name}: {path.stat().st_size} bytes")


def version(checkout: Path) -> str:
    """Commit of a checkout, from its git folder or from a file COMMIT beside the code."""
    stated = checkout / "COMMIT"
    if stated.exists():
        return stated.read_text().strip()
    done = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def import_below(root: Path, packages: Iterable[str], module: str) -> Any:
    """Import a module without running the `__init__` of the packages above it, which need much more."""
    for name in packages:
        package = types.ModuleType(name)
        package.__path__ = [str(root / name.replace(".", "/"))]  # type: ignore[attr-defined]
        sys.modules[name] = package
    return importlib.import_module(module)


def stub(name: str, **members: Any) -> None:
    """Put a module in place of one that is imported and not needed."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module


def classes_of(script: Path, **globals_: Any) -> types.SimpleNamespace:
    """The classes of a training script, without what it does: its other statements are left out."""
    tree = ast.parse(script.read_text())
    tree.body = [part for part in tree.body if isinstance(part, ast.ClassDef)]
    space: dict[str, Any] = {"torch": torch, "nn": nn, "np": np, "F": nn.functional, **globals_}
    exec(compile(tree, str(script), "exec"), space)  # noqa: S102
    return types.SimpleNamespace(**space)


def ffno(sources: Path) -> None:
    """F-FNO on a grid: features after the last layer, its branch, and the output."""
    root = sources / "fourierflow"
    packages = ["fourierflow", "fourierflow.modules", "fourierflow.modules.factorized_fno"]
    code = import_below(root, packages, "fourierflow.modules.factorized_fno.grid_2d")
    cases = {}
    for case, shared in (("shared", True), ("unshared", False)):
        settings = {"modes": 4, "width": 6, "n_layers": 3, "factor": 2}
        network = code.FNOFactorized2DBlock(
            **settings, input_dim=4, share_weight=shared, ff_weight_norm=shared, n_ff_layers=2
        ).double()
        shapes, seen = fill(network), []
        network.spectral_layers[-1].register_forward_hook(
            lambda module, inputs, output, seen=seen: seen.extend((inputs[0], output[0]))
        )
        fields = torch.from_numpy(sequence(0, (2, 9, 12, 2)))
        with torch.no_grad():
            forecast = network(torch.cat([fields, centres(9, 12).expand(2, -1, -1, -1)], dim=-1))["forecast"]
        outputs = {"features": (seen[0] + seen[1])[:1, ::2, ::3], "output": forecast[..., 0]}
        cases[case] = {"settings": settings, "weights": shapes, "outputs": outputs}
    write("ffno", f"alasdairtran/fourierflow@{version(root)}", cases)


def lno(sources: Path) -> None:
    """LNO: in 1D the network of one channel and the steady part of three, in 2D the layer and its steady part."""
    root = sources / "Laplace-Neural-Operator"
    torch.Tensor.cuda = lambda self, *_: self  # type: ignore[method-assign,assignment]
    n, (rows, columns) = 15, (7, 9)
    line = classes_of(root / "1D_Duffing_c0" / "main.py", grid_x_train=torch.arange(n) / n)
    plane = classes_of(
        root / "2D_Diffusion" / "main.py", T=torch.arange(columns)[None] / columns, X=torch.arange(rows)[None] / rows
    )
    frequencies = [
        (torch.fft.fftfreq(count, 1 / count) * 2j * np.pi)[:, None, None, None] for count in (n, rows, columns)
    ]
    cases: dict[str, dict[str, Any]] = {}

    def add(case: str, network: nn.Module, run: Callable[[], torch.Tensor]) -> None:
        shapes = fill(network, stable=True)
        with torch.no_grad():
            cases[case] = {"weights": shapes, "outputs": {"output": run()}}

    whole = line.LNO1d(1, 4)
    add("line", whole, lambda: whole(torch.from_numpy(sequence(0, (2, n, 1))).float()))
    first = line.PR(3, 3, 4)
    field = torch.from_numpy(sequence(0, (2, 3, n))).float()
    transformed = torch.fft.fft(field)
    add("line_steady", first, lambda: torch.fft.ifft(
        first.output_PR(frequencies[0], transformed, first.weights_pole, first.weights_residue)[0]
    ).real)  # fmt: skip
    layer = plane.PR2d(1, 1, 3, 3)
    add("plane", layer, lambda: layer(torch.from_numpy(sequence(0, (2, 1, rows, columns))).float()))
    second = plane.PR2d(2, 2, 3, 3)
    spectrum = torch.fft.fft2(torch.from_numpy(sequence(0, (2, 2, rows, columns))).float())
    add("plane_steady", second, lambda: torch.fft.ifft2(
        second.output_PR(
            frequencies[1], frequencies[2], spectrum,
            second.weights_pole1, second.weights_pole2, second.weights_residue,
        )[0]
    ).real)  # fmt: skip
    write("lno", f"qianyingcao/Laplace-Neural-Operator@{version(root)}", cases)


def transolver(sources: Path) -> None:
    """Transolver for irregular meshes: the attention of its first block and the output."""
    root = sources / "Transolver"
    sys.path.insert(0, str(root / "PDE-Solving-StandardBenchmark"))
    for package in ("timm", "timm.models"):
        stub(package)
    stub("timm.models.layers", trunc_normal_=nn.init.trunc_normal_)
    code = importlib.import_module("model.Transolver_Irregular_Mesh")
    settings = {"n_layers": 2, "n_hidden": 8, "n_head": 2, "mlp_ratio": 2, "slice_num": 4}
    network = code.Model(space_dim=2, fun_dim=2, out_dim=1, **settings).double()
    shapes, seen = fill(network), []
    with torch.no_grad():
        for block in network.blocks:
            block.Attn.temperature.abs_().clamp_(min=0.2)
    network.blocks[0].Attn.register_forward_hook(lambda module, inputs, output: seen.extend((inputs[0], output)))
    fields = torch.from_numpy(sequence(0, (2, 30, 2)))
    with torch.no_grad():
        output = network(centres(5, 6).view(1, 30, 2).expand(2, -1, -1), fields)
    outputs = {"attention_input": seen[0][:1], "attention": seen[1][:1], "output": output[..., 0]}
    write("transolver", f"thuml/Transolver@{version(root)}", {
        "irregular": {"settings": settings, "weights": shapes, "outputs": outputs}
    })  # fmt: skip


def cvit(sources: Path) -> None:
    """CViT in 2D: what its parts give on the way, and the output."""
    import jax
    from flax.traverse_util import flatten_dict, unflatten_dict

    root = sources / "cvit"
    spec = importlib.util.spec_from_file_location("cvit_model", root / "src" / "model.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(root / "src" / "model.py")
    code = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    settings = {
        "patch_size": [1, 4, 4], "grid_size": [8, 8], "latent_dim": 6, "emb_dim": 8, "depth": 2, "num_heads": 2,
        "dec_emb_dim": 12, "dec_num_heads": 3, "dec_depth": 1, "mlp_ratio": 2, "eps": 100.0,
    }  # fmt: skip
    network = code.CVit(
        **{key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    )
    x = sequence(0, (2, 3, 8, 8, 2)).astype(np.float32)
    ends = np.linspace(0, 1, 8)
    points = np.stack(np.meshgrid(ends, ends, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.float32)
    variables = network.init(jax.random.PRNGKey(0), x, points)
    shapes = {"/".join(name): [*value.shape] for name, value in sorted(flatten_dict(variables["params"]).items())}
    made = {tuple(name.split("/")): value.float().numpy() for name, value in weights(shapes).items()}
    filled = {**variables, "params": unflatten_dict(made)}
    output, state = network.apply(filled, x, points, capture_intermediates=True)
    parts = {"/".join(name[:-1]): value[0] for name, value in flatten_dict(state["intermediates"]).items()}
    outputs = {
        "frames": parts["Encoder_0/TimeAggregation_0"][:, 0],
        "encoder": parts["Encoder_0"],
        "decoder": parts["CrossAttnBlock_0"][:1, ::5],
        "output": output[..., 0],
    }
    write("cvit", f"PredictiveIntelligenceLab/cvit@{version(root)}", {
        "plane": {"settings": settings, "weights": shapes, "outputs": outputs}
    })  # fmt: skip


def local_fno(sources: Path) -> None:
    """LocalNO without its integral branch, on the grid of its stencils' size and on one twice as fine."""
    # The integral branch imports two names of torch_harmonics when its file is read; it is not built here.
    stub("torch_harmonics")
    stub("torch_harmonics.quadrature", _precompute_grid=None)
    bases = ("PiecewiseLinearFilterBasis", "MorletFilterBasis", "ZernikeFilterBasis")
    stub("torch_harmonics.filter_basis", **dict.fromkeys(bases))
    import neuralop

    code = importlib.import_module("neuralop.models.local_no")
    settings = {"hidden_channels": 4, "n_layers": 2}
    network = code.LocalNO(
        (6, 4), 4, 1, default_in_shape=(8, 8), disco_layers=False, conv_padding_mode="periodic",
        lifting_channel_ratio=0, projection_channel_ratio=2, positional_embedding=None, **settings,
    )  # fmt: skip
    shapes, outputs = fill(network), {}
    for cells in (8, 16):
        fields = torch.from_numpy(sequence(0, (2, 2, cells, cells)))
        places = (1 - torch.cos(2 * torch.pi * centres(cells, cells))) / 2
        inputs = torch.cat([fields, places.movedim(-1, 0).expand(2, -1, -1, -1)], dim=1)
        with torch.no_grad():
            outputs[f"output_{cells}"] = network(inputs.float())[:, 0, ::2, :: cells // 8]
    write("local_fno", f"neuraloperator/neuraloperator {neuralop.__version__}", {
        "differential": {"settings": settings, "weights": shapes, "outputs": outputs}
    })  # fmt: skip


def dymixop(sources: Path) -> None:
    """DyMixOp on one and two axes: the dynamics between lift and readout, and the output."""
    root = sources / "DyMixOp"
    sys.path.insert(0, str(root / "DyMixOp" / "Models"))
    code = importlib.import_module("DyMixOp")
    cases = {}
    for cells in ((16,), (12, 12)):
        settings = {"hidden_dim": 4, "num_layers": 3, "global_modes": 3}
        config = types.SimpleNamespace(
            **settings, inp_involve_history_step=1, ar_nseq_train=1, ar_nseq_test=0, input_dim=1, output_dim=1,
            coor_input_dim=len(cells),
        )  # fmt: skip
        network = code.DyMixOp(config, torch.device("cpu"))
        shapes, seen = fill(network), []
        network.dyia.register_forward_hook(lambda module, inputs, output, seen=seen: seen.append(output))
        fields = torch.from_numpy(sequence(0, (2, 2, *cells))).float()
        places = (
            ((1 - torch.cos(2 * torch.pi * centres(*cells))) / 2).movedim(-1, 0).expand(2, *[-1] * (len(cells) + 1))
        )
        with torch.no_grad():
            output = network(fields, [places.float()])
        outputs = {"dynamics": seen[0][:1], "output": output[:, 0, 0]}
        cases[f"{len(cells)}d"] = {"settings": settings, "weights": shapes, "outputs": outputs}
    write("dymixop", f"Lain-PY/DyMixOp@{version(root)}", cases)


MAKERS: dict[str, Callable[[Path], None]] = {
    "ffno": ffno,
    "lno": lno,
    "transolver": transolver,
    "cvit": cvit,
    "local_fno": local_fno,
    "dymixop": dymixop,
}

if __name__ == "__main__":
    for chosen in sys.argv[2:] or MAKERS:
        MAKERS[chosen](Path(sys.argv[1]))
