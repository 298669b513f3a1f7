"""From a model and inputs to a certificate: bounds, attacks on them, and their status."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.kan import KAN
from spectrakan.theory.attack import Attack, AttackSettings, attack, euclid, largest
from spectrakan.theory.certificate import Certificate, Entry, LayerEdges, Status
from spectrakan.theory.kan_bounds import box_bound, box_images, exact_bounds, layers_of, lemma_bounds, product_bound
from spectrakan.theory.norms import spectral_norm
from spectrakan.theory.parts import model_map
from spectrakan.theory.sample_bounds import QUANTITIES, SampleBounds, bound_sample, in_float64
from spectrakan.theory.theorem import Constants

TOO_LARGE = (
    "this model has too many hidden units for a proof: modulation and prediction are measured, not "
    "bounded; certify at a lower resolution or width for a proof"
)
Ball = tuple[Tensor, Tensor | None]
"""One normalised input `(1, history, *space, field)` around which the region is a ball, and its parameters."""
UNBOUNDED = "no finite bound in float64 for {}: weights or values are too large"


def certify(
    model: Operator,
    inputs: Tensor,
    radius: float = 0.1,
    *,
    params: Tensor | None = None,
    grid: Grid | None = None,
    config: AttackSettings | None = None,
) -> Certificate:
    """Bound how much token, modulation and prediction can change, and try to break the bounds.

    `inputs` `(B, history, *space, in)` and `params` are physical; the region is the sup-norm ball of `radius` in
    normalised units around each input, with fixed parameters. Everything is computed in float64 for the model with
    exactly the given weights. What has no finite bound is infinite, and a note names it. `config` says how hard the
    attacks try.

    >>> import torch
    >>> from spectrakan.fields import OperatorSignature
    >>> from spectrakan.models import build_model
    >>> signature = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    >>> model = build_model("spectrakan", signature, width=4, num_modes=2, num_layers=2)
    >>> certificate = certify(model, torch.randn(1, 1, 8, 1), radius=0.01)
    >>> certificate.status["modulation"], certificate.modulation_attacked <= certificate.modulation
    ('certified', True)
    """
    return certify_radii(model, inputs, [radius], params=params, grid=grid, config=config)[0]


def certify_radii(
    model: Operator,
    inputs: Tensor,
    radii: Sequence[float],
    *,
    params: Tensor | None = None,
    grid: Grid | None = None,
    config: AttackSettings | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Certificate]:
    """A certificate for every radius; linear parts depend on it, so that each has a run of bounds of its own.

    `progress` is called with the hundredths of the bounds that are done, and 100.
    """
    if not isinstance(model, SpectraKAN) or model.global_token is None:
        raise ConfigError(
            f"certificates are about the token and modulation of a spectrakan model, got '{model.name}'"
        )
    if bad := [radius for radius in radii if not 0 < radius < math.inf]:
        raise ConfigError(f"the radius of the region must be positive and finite, got {bad[0]}")
    model._check(inputs, params)
    exact, history, given, axes = in_float64(model, inputs, params, grid)
    count = len(history)
    balls: list[Ball] = list(zip(history.split(1), [None] * count if given is None else given.split(1), strict=True))

    def bounds(number: int) -> list[SampleBounds]:
        def tell(share: float) -> None:
            progress(int(100 * (number + share) / count), 100)

        found = bound_sample(exact, *balls[number], axes, radii, tell)
        tell(1.0)
        return found

    samples = [bounds(number) for number in range(count)]
    tries = config or AttackSettings()
    attacks = [[_attacks(exact, ball, axes, radius, tries) for ball in balls] for radius in radii]
    return [
        _certificate(exact, history, radius, [sample[place] for sample in samples], attacks[place])
        for place, radius in enumerate(radii)
    ]


def _certificate(
    model: SpectraKAN, history: Tensor, radius: float, samples: list[SampleBounds], attacks: list[dict[str, Attack]]
) -> Certificate:
    worst = {
        name: Attack(*(max(getattr(found[name], part) for found in attacks) for part in ("change", "slope")))
        for name in QUANTITIES
    }
    constants = [sample.constants for sample in samples if sample.constants is not None]
    log_paper = max(each.log_paper() for each in constants) if constants else None
    entries = _output_entries(samples, worst)
    if log_paper is not None:
        covariance, attacked = max(each.covariance() for each in constants), worst["modulation"].slope
        meaning = "L_v + M_v S with the theorem's constants"
        entries["modulation_covariance"] = Entry(covariance, "certified", meaning, attacked)
        paper = math.exp(log_paper) if log_paper < 700 else math.inf
        entries["modulation_paper"] = Entry(paper, "certified", "L_m of Theorem 3.2, same constants", attacked)
    network, edges = model._need_token().network, tuple[LayerEdges, ...]()
    if isinstance(network, KAN):
        summaries = torch.stack([sample.summary for sample in samples]).unbind(1)
        entries, edges = _kan_entries(network, *summaries) | entries, _edges(network, *summaries)
    unbounded = [name for name, entry in entries.items() if math.isinf(entry.value)]
    if log_paper is not None and math.isfinite(log_paper):
        unbounded = [name for name in unbounded if name != "modulation_paper"]
    notes = [] if "prediction" in samples[0].rates else [TOO_LARGE]
    return Certificate(
        radius=radius,
        num_inputs=len(samples),
        resolution=tuple(history.shape[2:-1]),
        entries=entries,
        edges=edges,
        constants=max(constants, key=Constants.covariance).as_mapping() if constants else {},
        log_modulation_paper=log_paper,
        notes=(*notes, *([UNBOUNDED.format(", ".join(unbounded))] if unbounded else [])),
    )


def _attacks(
    model: SpectraKAN, ball: Ball, axes: Sequence[Axis], radius: float, config: AttackSettings
) -> dict[str, Attack]:
    """The worst that attacks find for every quantity in one ball."""
    history, params = ball
    sizes = {"token": euclid, "modulation": euclid, "prediction": largest}
    maps = {name: model_map(model, name, params, axes) for name in QUANTITIES}
    return {name: attack(maps[name], history, radius, sizes[name], config) for name in QUANTITIES}


def _output_entries(samples: list[SampleBounds], worst: dict[str, Attack]) -> dict[str, Entry]:
    """Rates and changes of token, modulation and prediction; measured ones where fields are too large."""
    entries: dict[str, Entry] = {}
    for name, found in worst.items():
        status: Status = "certified" if name in samples[0].rates else "estimated"
        if status == "certified":
            rate, change = (max(getattr(each, part)[name] for each in samples) for part in ("rates", "change"))
        else:
            rate, change = found.slope, found.change
        entries[name] = Entry(rate, status, f"{name}, between any two inputs of one ball", found.slope)
        meaning = f"{name}, from the input to anywhere in its ball"
        entries[f"{name}_change"] = Entry(change, status, meaning, found.change)
    return entries


def _kan_entries(kan: KAN, low: Tensor, high: Tensor) -> dict[str, Entry]:
    """Bounds of the token's KAN by itself, over boxes of its inputs `(B, d_0)` and everywhere."""
    lemma, hull, exact = (float(product_bound(kan, kind)) for kind in ("lemma", "hull", "exact"))
    boxed = min(float(box_bound(kan, low, high).max()), exact)
    everywhere = "L_KAN everywhere, {}, product of layers"
    return {
        "kan": Entry(boxed, "certified", "L_KAN over the summaries of the region", _attack_kan(kan, low, high)),
        "kan_exact_product": Entry(exact, "certified", everywhere.format("exact edges")),
        "kan_hull_product": Entry(hull, "certified", everywhere.format("differences of coefficients")),
        "kan_lemma_product": Entry(lemma, "certified", everywhere.format("Lemma 3.1")),
    }


def _attack_kan(kan: KAN, low: Tensor, high: Tensor) -> float:
    """The largest norm of a Jacobian at centres and random points of the boxes; those that overflow are left out."""
    shares = torch.rand(9, low.shape[1], dtype=low.dtype, generator=torch.Generator().manual_seed(0))
    shares[0] = 0.5
    points = torch.lerp(low[:16, None], high[:16, None], shares).flatten(0, 1)
    # Rows do not depend on each other, so the Jacobian of their sum has that of every row.
    jacobians = torch.autograd.functional.jacobian(lambda z: kan(z).sum(0), points).movedim(1, 0)
    finite = jacobians.isfinite().all(-1).all(-1)
    return max(spectral_norm(jacobians[finite]).tolist(), default=0.0)


@torch.no_grad()
def _edges(kan: KAN, low: Tensor, high: Tensor) -> tuple[LayerEdges, ...]:
    reports = []
    for layer, (least, most) in zip(layers_of(kan), box_images(kan, low, high), strict=False):
        on_region = exact_bounds(layer, least.amin(1), most.amax(1))
        reports.append(LayerEdges(lemma_bounds(layer).tolist(), exact_bounds(layer).tolist(), on_region.tolist()))
    return tuple(reports)
