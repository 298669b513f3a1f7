"""Fields that processes share: outputs, gradients and fitted numbers of models, joined, in a file.

`torchrun --nproc-per-node N tests/space_process.py FILE REFERENCE` writes what `results()` gives with cut fields.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file

import spectrakan as sk
from spectrakan.fields import GridPart, SpaceGroup
from spectrakan.training.objective import loss

SIZE = {"width": 5, "num_modes": 4, "num_layers": 2}
SMALL = {**SIZE, "pool": "center", "conditioning": "readout"}
COARSE = {"coarse_num_layers": 1, "coarse_num_modes": 3}
PAPER = {**SMALL, **COARSE, "variant": "paper"}
CASES: dict[str, tuple[str, dict, tuple[int, ...], tuple[str, ...]]] = {
    "1d": ("spectrakan", SMALL, (17,), ("periodic",)),
    "1d dynamics": ("spectrakan", SIZE, (17,), ("periodic",)),
    "2d dynamics": ("spectrakan", SIZE, (18, 9), ("periodic", "wall")),
    "1d coarse": ("spectrakan", {**SMALL, **COARSE}, (19,), ("wall",)),
    "2d": ("spectrakan", {**SMALL, "multiplicative_readout": True}, (18, 9), ("outflow", "periodic")),
    "2d joint": ("spectrakan", {**SMALL, **COARSE, "block": "skip"}, (20, 7), ("periodic", "wall")),
    "2d paper": ("spectrakan", PAPER, (21, 8), ("periodic", "periodic")),
    "2d token": ("spectrakan", {**SMALL, "conditioning": "both", "pool": "center+mean+std"}, (17, 6), ("wall",) * 2),
    "2d stride 3": ("spectrakan", {**SMALL, **COARSE, "stride": 3}, (23, 10), ("periodic",) * 2),
    "cosine": ("spectrakan", {**SMALL, "basis": "cosine", "squeeze_excite": "open"}, (18, 7), ("wall",) * 2),
    "sine": (
        "spectrakan",
        {**SMALL, **COARSE, "basis": "sine", "coarse_mixing": "axial"},
        (18, 7),
        ("dirichlet",) * 2,
    ),
    "3d": ("spectrakan", {**SMALL, **COARSE}, (17, 6, 5), ("periodic", "wall", "outflow")),
    "no attention": ("spectrakan", {**SMALL, "use_gml": False, "history_decay": "auto"}, (17, 6), ("wall",) * 2),
    "fno 1d": ("fno", SIZE, (17,), ("wall",)),
    "fno 2d": ("fno", SIZE, (18, 9), ("periodic", "wall")),
    "fno 3d": ("fno", SIZE, (17, 6, 5), ("periodic",) * 3),
    "ffno 2d": ("ffno", {**SIZE, "share_weights": False}, (19, 8), ("periodic",) * 2),
    "ffno 3d": ("ffno", SIZE, (16, 5, 6), ("wall",) * 3),
}


def faces(cells: int, graded: bool) -> torch.Tensor:
    share = torch.linspace(0, 1, cells + 1, dtype=torch.float64)
    return (share + 0.3 * share**2) / 1.3 if graded else share


def result(
    name: str, graded: bool, steady: bool, space: SpaceGroup | None, reference: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Fit, predict, roll out, differentiate and calibrate one model; fields are parts where `space` is given.

    After the fit the model goes on with the numbers of the reference: least squares on splines amplify rounding.
    """
    model_name, settings, cells, boundary = CASES[name]
    generator = torch.Generator().manual_seed(len(name))
    whole = sk.Grid.from_edges([faces(count, graded) for count in cells], boundary)
    grid = whole if space is None else GridPart.of(whole, space)
    fields = torch.randn(3, 5, *cells, 2, generator=generator, dtype=torch.float64).cumsum(1) + 3
    params = torch.randn(3, 1, generator=generator, dtype=torch.float64)
    fields = grid.cut(fields, 2) if isinstance(grid, GridPart) else fields
    facts = {"history": 1 if steady else 2, "steady": steady, "num_params": 1}
    signature = sk.OperatorSignature(space_dims=len(cells), in_channels=2, out_channels=2, boundary=boundary, **facts)
    torch.manual_seed(0)
    settings = {key: value for key, value in settings.items() if not (steady and key == "multiplicative_readout")}
    model = sk.build_model(model_name, signature, **settings).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    inputs, targets = fields[:, : signature.history], fields[:, signature.history : 3]
    model.fit_statistics(inputs, targets[:, :1] if steady else targets, params, grid)
    found = {f"fitted {key}": value.double().clone() for key, value in model.state_dict().items()}
    if reference:
        kinds = model.state_dict()
        start = f"{title(name, graded)}: fitted "
        model.load_state_dict({key: reference[start + key].to(value) for key, value in kinds.items()})
    before = 0 if space is None else space.exchanged
    output = model(inputs, params, grid)
    loss("relative_l2", output[:, None], targets[:, :1], grid=grid).mean().backward()
    if space is not None:
        found["bytes"] = torch.tensor(space.exchanged - before)
    for key, parameter in model.named_parameters():
        found[f"gradient {key}"] = parameter.grad if space is None else space.sum(parameter.grad) / space.size
    with torch.no_grad():
        model.calibrate(inputs, targets[:, :1] if steady else targets, params, grid)
        frames = output[:, None] if steady else sk.rollout(model, inputs, 3, params, grid)
    if isinstance(grid, GridPart):
        output, frames = grid.join(output, 1), grid.join(frames, 2)
    found |= {"output": output.detach(), "frames": frames.detach()}
    return found | {f"calibrated {key}": value.double() for key, value in model.named_buffers()}


def title(name: str, graded: bool) -> str:
    return f"{name}, {'graded and steady' if graded else 'equal and evolving'}"


def results(
    space: SpaceGroup | None = None, reference: dict[str, torch.Tensor] | None = None
) -> dict[str, torch.Tensor]:
    """Every case, on equal and on graded cells, evolving and steady."""
    found = {}
    for name in CASES:
        for graded in (False, True):
            one = result(name, graded, graded, space, reference or {})
            found |= {f"{title(name, graded)}: {key}": each for key, each in one.items()}
    return {key: value.clone(memory_format=torch.contiguous_format) for key, value in found.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    made = results(SpaceGroup(), load_file(sys.argv[2]))
    if dist.get_rank() == 0:
        save_file(made, Path(sys.argv[1]))
    dist.destroy_process_group()
