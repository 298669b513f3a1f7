"""Which frequencies the spectral layers pass along each axis, and how much power they carry on data.

    strength_a(k) = |gamma_a(k)| ||W_a(k)||_2       the largest gain of mode k, from the weights
    power_a(k)    = mean over samples, channels and the other axes of a_k |c_a(k)|^2     the output of mode k, on data

a_k is 1 for the constant mode and 2 for the others, so that on equal cells the powers sum to the mean square of the
field that axis a contributes (in all bases but `extended`, whose waves are not orthogonal on the domain itself).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import BaseTorchFunctionMode

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.block import Block
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
    strength: Float[Tensor, " modes"]
    """|gamma(k)|, one where the layer has no gates, times the largest singular value of W(k)."""
    power: Float[Tensor, " modes"] | None = None
    """Mean square of each mode's output on given data; zero for modes that the grid does not resolve."""


def gate_spectra(model: Operator) -> list[GateSpectrum]:
    """The gains that the weights give, for every axial layer and axis of the trunk.

    >>> from spectrakan.fields import OperatorSignature
    >>> from spectrakan.models import build_model
    >>> signature = OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1)
    >>> spectra = gate_spectra(build_model("spectrakan", signature, num_modes=12, num_layers=3))
    >>> len(spectra), len(spectra[0].frequencies)
    (6, 12)
    """
    return [_of_weights(*part) for part in _axial_parts(model)]


@torch.no_grad()
def used_spectra(
    model: Operator, x: Tensor, params: Tensor | None = None, grid: Grid | None = None
) -> list[GateSpectrum]:
    """The same with each mode's output power on physical inputs `(samples, history, *space, field)`."""
    parts = list(_axial_parts(model))
    outputs: dict[nn.Module, Tensor] = {}

    def keep(mixing: nn.Module, inputs: Any, rows: Tensor) -> None:
        """The mean square of each row of an output."""
        outputs[mixing] = rows.double().square().flatten(1).mean(1).cpu()

    with ExitStack() as stack:
        stack.enter_context(BaseTorchFunctionMode())  # watched layers are not fused: their hooks are called
        for *_, mixing in parts:
            stack.callback(mixing.register_forward_hook(keep).remove)
        model(x, params, grid)
    spectra = [(_of_weights(*part), part[-1]) for part in parts]
    return [replace(spectrum, power=_power(outputs[mixing], mixing, spectrum)) for spectrum, mixing in spectra]


def axis_shares(spectra: Sequence[GateSpectrum]) -> dict[tuple[str, int], Tensor]:
    """The contribution of each axis to a layer: shares of the power, or of strength² without data.

    Keyed by (branch, layer); the shares `(axes,)` sum to one.
    """
    totals: dict[tuple[str, int], list[Tensor]] = {}
    for spectrum in spectra:
        amount = spectrum.strength.square() if spectrum.power is None else spectrum.power
        totals.setdefault((spectrum.branch, spectrum.layer), []).append(amount.sum())
    return {key: torch.stack(parts) / torch.stack(parts).sum() for key, parts in totals.items()}


def _axial_parts(model: Operator) -> Iterator[tuple[str, int, int, AxialSpectral, ModeMixing]]:
    if not isinstance(model, SpectraKAN):
        raise ConfigError(f"expected a model with a gated trunk (spectrakan, amfno), got '{model.name}'")
    found = False
    for name, branch in (("fine", model.trunk.fine), ("coarse", model.trunk.coarse)):
        for layer, block in enumerate(() if branch is None else branch.blocks):
            axial = cast(Block, block).axial
            for axis, mixing in enumerate(() if axial is None else axial.mixing):
                found = True
                yield name, layer, axis, cast(AxialSpectral, axial), cast(ModeMixing, mixing)
    if not found:
        raise ConfigError("this model has no axial layers: its modes have no axis")


@torch.no_grad()
def _of_weights(branch: str, layer: int, axis: int, axial: AxialSpectral, mixing: ModeMixing) -> GateSpectrum:
    weight = mixing.weight.double().cpu()
    matrices = torch.view_as_complex(weight.contiguous()) if mixing.complex else weight
    strength = torch.linalg.matrix_norm(matrices, 2)
    if mixing.gate is not None:
        strength = mixing.gate.double().cpu().abs() * strength
    return GateSpectrum(branch, layer, axis, frequencies(axial.bases[axis], len(weight)), strength)


def _power(rows: Tensor, mixing: ModeMixing, spectrum: GateSpectrum) -> Tensor:
    """From rows to modes with the weights a_k; zero for modes that the grid does not resolve."""
    pairs = rows.view(-1, 2) if mixing.complex else rows[:, None]
    constant = spectrum.frequencies[: len(pairs)] == 0
    # The constant mode of a real field is real: its imaginary row is dropped by the inverse transform.
    modes = torch.where(constant, pairs[:, 0], 2 * pairs.sum(1))
    power = torch.zeros_like(spectrum.strength)
    power[: len(modes)] = modes
    return power
