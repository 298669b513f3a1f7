"""`spectrakan generate`: samples of a problem, made by its solver and written to a file."""

import math
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from spectrakan.config import apply_overrides


def generate(
    problem: Annotated[str, typer.Argument(help="Name of the problem; `spectrakan tasks` lists them.")],
    parameters: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Parameters of the equation.", show_default=False),
    ] = None,
    num_samples: Annotated[int, typer.Option("--num-samples", "-n", help="How many samples.")] = 100,
    resolution: Annotated[int | None, typer.Option(help="Cells per axis.", show_default="the problem's")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames per sample.", show_default="the problem's")] = None,
    seed: Annotated[int, typer.Option(help="Sample i depends on the seed and on i alone.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .h5, or .nc for others.", show_default="PROBLEM.h5"),
    ] = None,
    layout: Annotated[str, typer.Option(help="native, or the_well for other programs (HDF5).")] = "native",
    double: Annotated[bool, typer.Option("--double", help="Store float64 instead of float32.")] = False,
    cluster: Annotated[
        str, typer.Option(help="Dask cluster: local:N processes, or tcp://HOST:PORT.", show_default="this process")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Make samples of a problem with its solver and write them to a file.

    Memory stays small however many there are.

    \b
    spectrakan generate darcy2d                                     100 samples to darcy2d.h5
    spectrakan generate droplet2d -n 1000 --seed 1 -o train.h5      more, elsewhere
    spectrakan generate cns1d -n 20 --resolution 256 eta=0.1 zeta=0.1
    spectrakan generate darcy2d --layout the_well -o darcy.hdf5     as The Well lays out its files
    spectrakan generate diffusion_reaction1d "nu=[0.1, 1.0]"        nu drawn for each sample
    spectrakan generate cns1d -n 10000 --cluster local:8            the same file, made by eight processes

    A number given as a range [low, high] is drawn uniformly for each sample and stored as a parameter.
    """
    import numpy as np

    from spectrakan.data.download import require_space
    from spectrakan.data.files import check_output, write_dataset
    from spectrakan.data.generate import generate as solved
    from spectrakan.training.display import progress_bar

    path = Path(f"{problem}.h5") if output is None else output
    check_output(path, force=force)
    params = apply_overrides({}, parameters or [])
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar(f"solving {problem}"))
        shown = None if cluster else progress
        asked = (problem, num_samples, resolution, seed)
        made = solved(*asked, frames=frames, params=params, dtype=None, progress=shown)
        kind = np.dtype(np.float64 if double else np.float32)
        arrays = [array for array in (made.values, made.inputs) if array is not None]
        size = kind.itemsize * sum(math.prod(array.shape) for array in arrays)
        require_space(path.parent, size, f"'{path}'")
        if cluster:
            from spectrakan.cli.cluster import ClusterArray, connected

            made = replace(made, values=ClusterArray(stack.enter_context(connected(cluster)), made.values, progress))
        write_dataset(path, made, dtype=kind, layout=layout)
    print(f"{path}: {num_samples} samples of {problem}, {path.stat().st_size / 1e6:.1f} MB")
