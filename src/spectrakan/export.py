"""A trained operator as one file that runs without this library.

    torch-export    `torch.export.load(file).module()(x)`; runs, and can be differentiated, wherever torch does
    onnx            `onnxruntime.InferenceSession(file).run(None, {"x": x})`; no torch at all
    aotinductor     `torch._inductor.aoti_load_package(file)(x)`; compiled code for the machine that exports

Physical numbers go in and come out: the units are part of the program. Inputs are `x` `(batch, history, *space, in)`
and, where the operator has parameters, `params` `(batch, num_params)`. Batch and cells stay free; on a grid of
unequal cells the cells are fixed, because the grid becomes part of the program. A file is kept only if it agrees with
the operator at two sizes that it was not traced at.
"""

import copy
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from spectrakan.config import as_mapping
from spectrakan.errors import ConfigError, RunError, nearest, require_package
from spectrakan.fields import Grid
from spectrakan.models.operator import MIN_CELLS, Operator
from spectrakan.storage import require_writable

AXES = ("x", "y", "z")
TRACED = (24, 32, 20)
"""Cells along each axis while the program is traced."""
UNTRACED = ((1, (37, 18, 23)), (5, (64, 41, 12)))
"""Batch and cells of the two checks."""
TOLERANCE = 1e-5
"""Largest difference from the operator, over the largest value of its output."""
OPSET = 20
Program = Callable[..., Tensor]


@dataclass(frozen=True)
class Exported:
    """A file that was written and checked."""

    path: Path
    cells: tuple[int, ...] | None
    """Cells of the only grid that it takes; None: any."""
    errors: dict[str, float]
    """Largest relative difference from the operator, by shape of the input."""


def export_model(
    model: Operator, path: Path | str, kind: str = "torch-export", *, grid: Grid | None = None, force: bool = False
) -> Exported:
    """Write the operator to `path` in a format of the file's head, after checking it against the operator.

    `grid` of unequal cells fixes the grid of the program. What cannot be exported raises `ConfigError` with the
    reason, and a program that disagrees with the operator raises `RunError`; neither leaves a file.
    """
    path = Path(path)
    _check_request(path, kind, force=force)
    grid = None if grid is None or grid.is_uniform() else grid
    still = _Physical(copy.deepcopy(model).cpu().eval().requires_grad_(False), grid)
    draft = path.with_name(f".{path.stem}.draft{path.suffix}")
    try:
        with _quiet(), _reasons(model, kind):
            program = _traced(still)
            facts = {"model": model.name, "signature": json.dumps(as_mapping(model.signature))}
            loaded = WRITERS[kind](program, draft, facts)
            errors = {str(shape): error for shape, error in _differences(still, loaded)}
        if not max(errors.values()) <= TOLERANCE:
            raise RunError(f"the exported program differs from the operator: {errors} relative; it was not kept")
        draft.replace(path)
    finally:
        for part in (draft, draft.with_name(draft.name + ".data")):
            part.unlink(missing_ok=True)
    return Exported(path, None if grid is None else grid.shape, errors)


class _Physical(nn.Module):
    """The operator as a function of tensors alone."""

    def __init__(self, model: Operator, grid: Grid | None) -> None:
        super().__init__()
        self.model, self.grid = model, grid
        if grid is not None:
            # The axes become constants of the program: numbers of a grid cannot be compared while it is traced.
            axes = model.axes(self.inputs(1, grid.shape)["x"], grid)
            model.__dict__["axes"] = lambda history, grid: axes

    def forward(self, x: Tensor, params: Tensor | None = None) -> Tensor:
        """`(batch, history, *space, in)` -> `(batch, *space, out)`."""
        output: Tensor = self.model(x, params, self.grid)
        return output

    def inputs(self, batch: int, cells: Sequence[int]) -> dict[str, Tensor]:
        """Random inputs of the size of the data, by name."""
        model, signature, generator = self.model, self.model.signature, torch.Generator().manual_seed(batch)
        space = tuple(cells[: signature.space_dims]) if self.grid is None else self.grid.shape
        dtype = model.residual_scale.dtype
        x = torch.randn(batch, signature.history, *space, signature.in_channels, generator=generator, dtype=dtype)
        given = {"x": model.input_units.denormalize(x)}
        if model.param_units is not None:
            params = torch.randn(batch, signature.num_params, generator=generator, dtype=dtype)
            given["params"] = model.param_units.denormalize(params)
        return given


def _check_request(path: Path, kind: str, *, force: bool) -> None:
    if kind not in ENDINGS:
        raise ConfigError(f"unknown format '{kind}'{nearest(kind, ENDINGS)}")
    if path.suffix != ENDINGS[kind]:
        raise ConfigError(f"a file of format {kind} ends in '{ENDINGS[kind]}', got '{path.name}'")
    for name in ("onnx", "onnxscript", "onnxruntime") if kind == "onnx" else ():
        require_package(name, "export", "the format onnx")
    if path.exists() and not force:
        raise ConfigError(f"'{path}' exists already; choose another name, or force to replace it")
    require_writable(path.parent)


def _traced(still: _Physical) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1)
    cells = [torch.export.Dim(name, min=MIN_CELLS) for name in AXES[: still.model.signature.space_dims]]
    free = {} if still.grid is not None else {2 + dim: size for dim, size in enumerate(cells)}
    given = still.inputs(3, TRACED)
    shapes = {name: {0: batch, **(free if name == "x" else {})} for name in given}
    return torch.export.export(
        still,
        (),
        given,
        dynamic_shapes=shapes,
        strict=False,
        prefer_deferred_runtime_asserts_over_guards=True,
    )


def _torch(program: torch.export.ExportedProgram, path: Path, facts: dict[str, str]) -> Program:
    torch.export.save(program, path, extra_files=facts)
    return torch.export.load(path).module()


def _onnx(program: torch.export.ExportedProgram, path: Path, facts: dict[str, str]) -> Program:
    import onnx
    import onnxruntime

    made = torch.onnx.export(program, dynamo=True, opset_version=OPSET, output_names=["y"], verbose=False)
    if made is None:
        raise RuntimeError("torch.onnx gave no program")
    proto = made.model_proto
    given = next(value for value in proto.graph.input if value.name == "x").type.tensor_type.shape.dim
    cells = zip(given[2:-1], AXES, strict=False)
    named = {given[0].dim_param: "batch"} | {dim.dim_param: name for dim, name in cells if dim.dim_param}
    for value in (*proto.graph.input, *proto.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = named.get(dim.dim_param, dim.dim_param)
    _keep_transposes(proto)
    onnx.helper.set_model_props(proto, facts)
    onnx.checker.check_model(proto)
    onnx.save(proto, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda **given: torch.from_numpy(
        session.run(None, {name: value.numpy() for name, value in given.items()})[0]
    )


def _keep_transposes(proto: Any) -> None:
    """Keep onnxruntime from fusing a transpose into the product after it, where it changes results by 0.4 %.

    Seen with onnxruntime 1.31.1 on `cns1d-small` (`MatmulTransposeFusion`). An axis that is added and removed
    between the two nodes copies nothing and stops the fusion.
    """
    from onnx import helper, numpy_helper

    graph, axis = proto.graph, "first_axis"
    made_by = {name: node for node in graph.node for name in node.output}
    graph.initializer.append(numpy_helper.from_array(np.zeros(1, dtype=np.int64), axis))
    nodes = []
    for node in graph.node:
        for at, name in enumerate(node.input if node.op_type == "MatMul" else ()):
            if name in made_by and made_by[name].op_type == "Transpose":
                up, down = f"{node.name}_{at}_up", f"{node.name}_{at}_down"
                nodes += [helper.make_node("Unsqueeze", [name, axis], [up])]
                nodes += [helper.make_node("Squeeze", [up, axis], [down])]
                node.input[at] = down
        nodes.append(node)
    copies = helper.make_graph(nodes, graph.name, [], []).node
    del graph.node[:]
    graph.node.extend(copies)


def _aot(program: torch.export.ExportedProgram, path: Path, facts: dict[str, str]) -> Program:
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    # The matcher mistakes attention over cells with a free batch for a scaled dot product of other shapes.
    settings = {"aot_inductor.metadata": facts, "pattern_matcher": False}
    aoti_compile_and_package(program, package_path=str(path), inductor_configs=settings)
    return aoti_load_package(str(path))


WRITERS = {"torch-export": _torch, "onnx": _onnx, "aotinductor": _aot}
"""How each format is written, and read again for the comparison."""
ENDINGS: dict[str, str] = {"torch-export": ".pt2", "onnx": ".onnx", "aotinductor": ".pt2"}


def _differences(still: _Physical, program: Program) -> Iterator[tuple[tuple[int, ...], float]]:
    for batch, cells in UNTRACED:
        given = still.inputs(batch, cells)
        with torch.no_grad():
            expected = still(**given)
            found = program(**given)
        if found.shape != expected.shape:
            raise RunError(f"the exported program gives {tuple(found.shape)}, expected {tuple(expected.shape)}")
        yield tuple(given["x"].shape), float((found - expected).abs().max() / expected.abs().max())


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that tracing a program causes inside torch."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextmanager
def _reasons(model: Operator, kind: str) -> Iterator[None]:
    """Turn whatever torch's exporters raise into one sentence with the reason."""
    try:
        yield
    except (ConfigError, RunError):
        raise
    except Exception as problem:
        lines = [line.strip(" -") for line in str(problem).splitlines() if line.strip(" -")]
        reason = next((line for line in lines if "No ONNX function" in line), lines[0] if lines else repr(problem))
        raise ConfigError(f"this {model.name or 'model'} cannot be exported as {kind}: {reason[:400]}") from problem
