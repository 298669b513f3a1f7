"""Which frequencies along which axis the spectral layers let through, and which of them the data use.

    strength_a(k) = |gamma_a(k)| ||W_a(k)||_2       the largest factor by which mode k can grow, from the weights
    power_a(k)    = mean over samples, channels and rest of space of a_k |c_a(k)|^2      what leaves it, on data

a_k is two but for the constant mode, so that on equal cells the powers add up to the mean square of the field that
axis a contributes (in all bases but `extended`, whose waves are not orthogonal on the domain itself).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.amfno import AMFNO
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.block import Block
from spectrakan.nn.multiscale import Branch
from spectrakan.nn.spectral import AxialSpectral, ModeMixing
from spectrakan.numerics.fourier import frequencies


@dataclass(frozen=True, eq=False)
class GateSpectrum:
    """One axis of one spectral layer."""

    branch: str
    """`fine` or `coarse`."""
    layer: int
    axis: int
    frequencies: Float[Tensor, " modes"]
    """In cycles per domain length."""
    gates: Float[Tensor, " modes"]
    """|gamma(k)|; ones where the layer has no gates."""
    strength: Float[Tensor, " modes"]
    """|gamma(k)| times the largest singular value of W(k)."""
    power: Float[Tensor, " modes"] | None = None
    """Mean square of what leaves each mode on given data; zero for modes that their grid does not have."""


def gate_spectra(model: Operator) -> list[GateSpectrum]:
    """What the weights let through, for every axial layer and axis of the trunk.

    >>> from spectrakan.fields import OperatorSignature
    >>> from spectrakan.models import build_model
    >>> facts = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1)
    >>> spectra = gate_spectra(build_model("spectrakan", facts, num_modes=12, num_layers=3, coarse=False))
    >>> len(spectra), len(spectra[0].frequencies)
    (6, 12)
    """
    return [_of_weights(*place) for place in _places(model)]


@torch.no_grad()
def used_spectra(
    model: Operator, x: Tensor, params: Tensor | None = None, grid: Grid | None = None
) -> list[GateSpectrum]:
    """The same with the power that leaves each mode on physical inputs `(samples, history, *space, field)`."""
    places = list(_places(model))
    seen: dict[int, Tensor] = {}
    with _listening([mixing for *_, mixing in places], seen):
        model(x, params, grid)
    spectra = [_of_weights(*place) for place in places]
    found = []
    for spectrum, (*_, mixing) in zip(spectra, places, strict=True):
        found.append(replace(spectrum, power=_power(seen[id(mixing)], mixing, spectrum)))
    return found


def axis_shares(spectra: Sequence[GateSpectrum]) -> dict[tuple[str, int], Tensor]:
    """How much of a layer goes through each axis: shares of the power, or of strength² where no data were seen.

    Keyed by (branch, layer); the shares `(axes,)` sum to one.
    """
    totals: dict[tuple[str, int], list[Tensor]] = {}
    for spectrum in spectra:
        amount = spectrum.strength.square() if spectrum.power is None else spectrum.power
        totals.setdefault((spectrum.branch, spectrum.layer), []).append(amount.sum())
    return {key: torch.stack(parts) / torch.stack(parts).sum() for key, parts in totals.items()}


def _places(model: Operator) -> Iterator[tuple[str, int, int, AxialSpectral, ModeMixing]]:
    if not isinstance(model, AMFNO | SpectraKAN):
        raise ConfigError(f"expected a model with a gated trunk (spectrakan, amfno), got '{model.name}'")
    branches: dict[str, Branch | None] = {"fine": model.trunk.fine, "coarse": model.trunk.coarse}
    found = False
    for name, branch in branches.items():
        blocks = [] if branch is None else [block for block in branch.blocks if isinstance(block, Block)]
        for layer, block in enumerate(blocks):
            if block.axial is None:
                continue
            for axis, mixing in enumerate(block.axial.mixing):
                if isinstance(mixing, ModeMixing):
                    found = True
                    yield name, layer, axis, block.axial, mixing
    if not found:
        raise ConfigError(
            "this model has no axial layers: it was built with mixing='joint', whose modes have no axis"
        )


@torch.no_grad()
def _of_weights(branch: str, layer: int, axis: int, axial: AxialSpectral, mixing: ModeMixing) -> GateSpectrum:
    weight = mixing.weight.double().cpu()
    matrices = torch.view_as_complex(weight.contiguous()) if mixing.complex else weight
    gates = torch.ones(len(weight), dtype=torch.float64) if mixing.gate is None else mixing.gate.double().cpu().abs()
    strength = gates * torch.linalg.matrix_norm(matrices, 2)
    return GateSpectrum(branch, layer, axis, frequencies(axial.bases[axis], len(weight)), gates, strength)


@contextmanager
def _listening(parts: Sequence[nn.Module], seen: dict[int, Tensor]) -> Iterator[None]:
    """Keep the mean square of what each part gives, over all but its rows."""

    def keep(part: nn.Module, inputs: Any, rows: Tensor) -> None:
        seen[id(part)] = rows.double().square().flatten(1).mean(1).cpu()

    handles = [part.register_forward_hook(keep) for part in parts]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _power(rows: Tensor, mixing: ModeMixing, spectrum: GateSpectrum) -> Tensor:
    """Rows to modes, weighed by a_k, and zeros for the modes that the grid was too coarse for."""
    pairs = rows.view(-1, 2) if mixing.complex else rows[:, None]
    constant = spectrum.frequencies[: len(pairs)] == 0
    # A real field has no imaginary part in its constant mode: what the mixing puts there is never seen.
    modes = torch.where(constant, pairs[:, 0], 2 * pairs.sum(1))
    power = torch.zeros_like(spectrum.strength)
    power[: len(modes)] = modes
    return power
