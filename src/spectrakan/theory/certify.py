"""From a model and inputs to a certificate: bounds, attacks on them, and which is which."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from spectrakan.config import settings
from spectrakan.errors import ConfigError
from spectrakan.fields import Grid
from spectrakan.models.operator import Operator
from spectrakan.models.spectrakan import SpectraKAN
from spectrakan.nn.axis import Axis
from spectrakan.nn.kan import KAN
from spectrakan.theory.attack import Attack, AttackSettings, attack, euclid, largest
from spectrakan.theory.certificate import Certificate, Entry, LayerEdges, Status
from spectrakan.theory.edges import exact_bounds, lemma_bounds
from spectrakan.theory.kan_bounds import box_bound, box_image, layers_of, product_bound
from spectrakan.theory.measured import measured_constants
from spectrakan.theory.sample_bounds import SampleBounds, bound_sample, bound_token, fits
from spectrakan.theory.theorem import Constants

TOO_LARGE = (
    "fields this large are not carried through the trunk: modulation and prediction are measured, not bounded; "
    "certify at a lower resolution or width for a proof"
)
NOT_REFINED = (
    "predictions on these cells, which are coarser than those of training, are made on cells of training "
    "(coarser_cells='refine'); the certificate is of the network on the cells as they come"
)


@settings
class CertifySettings:
    """How much work a certificate may be."""

    stages: int = 4
    """Nested balls that the bounds grow through; more are tighter and slower."""
    attack: AttackSettings = AttackSettings()
    """How hard to try to break the bounds."""


def certify(
    model: Operator,
    inputs: Tensor,
    radius: float = 0.1,
    *,
    params: Tensor | None = None,
    grid: Grid | None = None,
    choices: CertifySettings | None = None,
) -> Certificate:
    """Bound how much token, modulation and prediction can change, and try to break the bounds.

    `inputs` `(B, history, *space, in)` and `params` are physical; the region is the sup-norm ball of `radius` in
    normalised units around each input, parameters held. Everything is computed in float64 for the model with
    exactly the given weights.

    >>> import torch
    >>> from spectrakan.fields import OperatorSignature
    >>> from spectrakan.models import build_model
    >>> facts = OperatorSignature(space_dims=1, history=1, in_channels=1, out_channels=1)
    >>> model = build_model("spectrakan", facts, width=4, num_modes=2, num_layers=2, coarse=False)
    >>> certificate = certify(model, torch.randn(1, 1, 8, 1), radius=0.01)
    >>> certificate.status["modulation"], certificate.modulation_attacked <= certificate.modulation
    ('certified', True)
    """
    if not isinstance(model, SpectraKAN) or model.global_token is None:
        raise ConfigError(
            f"certificates are about the token and modulation of a spectrakan model, got '{model.name}'"
        )
    if not 0 < radius < math.inf:
        raise ConfigError(f"the radius of the region must be positive and finite, got {radius}")
    choices = choices or CertifySettings()
    region = _Region.of(model, inputs, params, grid, radius)
    samples = [region.sample(number, choices) for number in range(inputs.shape[0])]
    attacks = [region.attacks(number, choices.attack) for number in range(inputs.shape[0])]
    worst = {name: _worst([found[name] for found in attacks]) for name in attacks[0]}
    entries, constants, log_paper = _entries(region, samples, worst)
    return Certificate(
        radius=radius,
        num_inputs=inputs.shape[0],
        resolution=tuple(inputs.shape[2:-1]),
        entries=entries,
        edges=_edges(region),
        constants=constants.as_mapping() if constants is not None else {},
        log_modulation_paper=log_paper,
        notes=region.notes(),
    )


@dataclass(frozen=True)
class _Sample:
    """What is known around one input: everything, or the token and measured constants where fields are too large."""

    token: tuple[float, float]
    bounds: SampleBounds | None
    heads: tuple[Constants, ...]


@dataclass(frozen=True)
class _Region:
    """The balls, at unit scale and in float64."""

    model: SpectraKAN
    history: Tensor
    params: Tensor | None
    axes: tuple[Axis, ...]
    radius: float

    @classmethod
    def of(
        cls, model: SpectraKAN, inputs: Tensor, params: Tensor | None, grid: Grid | None, radius: float
    ) -> _Region:
        model._check(inputs, params)
        exact = deepcopy(model).cpu().double().eval().requires_grad_(False)
        history, scaled = exact.normalized(inputs.cpu().double(), None if params is None else params.cpu().double())
        return cls(exact, history, scaled, exact.axes(history, grid), radius)

    @property
    def carried(self) -> bool:
        """Whether bounds go through the trunk."""
        return fits(self.model, self.history)

    def one(self, number: int) -> tuple[Tensor, Tensor | None]:
        params = None if self.params is None else self.params[number : number + 1]
        return self.history[number : number + 1], params

    def sample(self, number: int, choices: CertifySettings) -> _Sample:
        history, params = self.one(number)
        radii = [self.radius * (step + 1) / choices.stages for step in range(choices.stages)]
        token = bound_token(self.model, history, params, self.axes, radii)
        if not self.carried:
            return _Sample(token, None, measured_constants(self.model, history, params, self.axes, self.radius))
        bounds = bound_sample(self.model, history, params, self.axes, radii)
        tighter = min(token[0], bounds.rates.token), min(token[1], bounds.change.token)
        return _Sample(tighter, bounds, bounds.heads)

    def attacks(self, number: int, choices: AttackSettings) -> dict[str, Attack]:
        history, params = self.one(number)
        maps = model_maps(self.model, params, self.axes)
        sizes = {"token": euclid, "modulation": euclid, "prediction": largest}
        return {name: attack(maps[name], history, self.radius, sizes[name], choices) for name in sizes}

    def summaries(self) -> tuple[Tensor, Tensor]:
        """Boxes that hold the summaries of every ball, `(B, d_0)` each."""
        token = self.model.global_token
        if token is None:
            raise ConfigError("this model has no token")
        middle = token.summary(self.history, self.params, self.axes)
        reach = torch.full_like(middle, self.radius)
        if self.params is not None:
            reach[:, middle.shape[1] - self.params.shape[1] :] = 0
        return middle - reach, middle + reach

    def notes(self) -> tuple[str, ...]:
        said = [] if self.carried else [TOO_LARGE]
        return tuple([*said, NOT_REFINED] if any(self.model.splits(self.axes)) else said)


def model_maps(
    model: SpectraKAN, params: Tensor | None, axes: Sequence[Axis]
) -> dict[str, Callable[[Tensor], Tensor]]:
    """Token, modulation and prediction as maps of normalised histories."""

    def told(history: Tensor) -> Tensor | None:
        return None if params is None else params.expand(history.shape[0], -1)

    def token(history: Tensor) -> Tensor:
        answer: Tensor = model._need_token()(history, told(history), axes)
        return answer

    def modulation(history: Tensor) -> Tensor:
        asked = token(history)
        value = model._value(asked, model._features(history, told(history), axes, asked), axes)
        if value is None:
            raise ConfigError("this model has no modulation")
        return value

    def prediction(history: Tensor) -> Tensor:
        return model.completed(model.respond(history, told(history), axes), history, axes)

    return {"token": token, "modulation": modulation, "prediction": prediction}


def _worst(found: Sequence[Attack]) -> Attack:
    worst = found[0]
    for each in found[1:]:
        worst = worst.worse(each)
    return worst


def _entries(
    region: _Region, samples: Sequence[_Sample], worst: dict[str, Attack]
) -> tuple[dict[str, Entry], Constants | None, float | None]:
    ball = "between any two inputs of one ball"
    away = "from the input to anywhere in its ball"
    entries = _token_entries(region)
    token = [max(sample.token[part] for sample in samples) for part in (0, 1)]
    entries["token"] = Entry(token[0], "certified", f"token, {ball}", worst["token"].slope)
    entries["token_change"] = Entry(token[1], "certified", f"token, {away}", worst["token"].change)
    status: Status = "certified" if region.carried else "estimated"
    heads = [sample.heads for sample in samples if sample.heads]
    worst_heads = max(heads, key=covariance_of, default=())
    for name in ("modulation", "prediction"):
        rate, change = worst[name].slope, worst[name].change
        if region.carried:
            bounds = [sample.bounds for sample in samples if sample.bounds is not None]
            values = (
                max(getattr(each.rates, name) for each in bounds),
                max(getattr(each.change, name) for each in bounds),
            )
        else:
            values = max(covariance_of(worst_heads), rate) if name == "modulation" else rate, change
        entries[name] = Entry(values[0], status, f"{name}, {ball}", rate)
        entries[f"{name}_change"] = Entry(values[1], status, f"{name}, {away}", change)
    if not worst_heads:
        return entries, None, None
    covariance = max(map(covariance_of, heads))
    entries["modulation_covariance"] = Entry(
        covariance, status, "L_v + M_v S with the theorem's constants", worst["modulation"].slope
    )
    log_paper = max(map(log_paper_of, heads))
    paper = math.exp(log_paper) if log_paper < 700 else math.inf
    entries["modulation_paper"] = Entry(
        paper, status, "L_m of Theorem 3.2, same constants", worst["modulation"].slope
    )
    return entries, max(worst_heads, key=lambda head: head.covariance()), log_paper


def covariance_of(heads: Sequence[Constants]) -> float:
    """L_v + M_v S of all heads together: Euclidean, for their outputs stand side by side."""
    return math.hypot(*(head.covariance() for head in heads)) if heads else 0.0


def log_paper_of(heads: Sequence[Constants]) -> float:
    """Logarithm of the paper's L_m of all heads together."""
    logs = [head.log_paper() for head in heads]
    top = max(logs)
    return top + 0.5 * math.log(sum(math.exp(2 * (each - top)) for each in logs))


def _token_entries(region: _Region) -> dict[str, Entry]:
    """What the KAN alone allows."""
    network = region.model._need_token().network
    if not isinstance(network, KAN):
        return {}
    low, high = region.summaries()
    lemma, hull, exact = (product_bound(network, kind).item() for kind in ("lemma", "hull", "exact"))
    boxed = min(float(box_bound(network, low, high).max()), exact)
    return {
        "kan": Entry(boxed, "certified", "L_KAN over the summaries of the region", _attack_kan(network, low, high)),
        "kan_exact_product": Entry(exact, "certified", "L_KAN everywhere, exact edges, product of layers"),
        "kan_hull_product": Entry(
            hull, "certified", "L_KAN everywhere, differences of coefficients, product of layers"
        ),
        "kan_lemma_product": Entry(lemma, "certified", "L_KAN everywhere, Lemma 3.1, product of layers"),
    }


def _attack_kan(network: KAN, low: Tensor, high: Tensor) -> float:
    """The largest norm of a Jacobian at centres and corners of the boxes."""
    source = torch.Generator().manual_seed(0)
    worst = 0.0
    for first, last in zip(low[:16], high[:16], strict=True):
        shares = torch.rand(8, first.numel(), dtype=first.dtype, generator=source)
        for place in [(first + last) / 2, *(torch.lerp(first, last, share) for share in shares)]:
            with torch.enable_grad():
                jacobian = torch.autograd.functional.jacobian(lambda z: network(z[None])[0], place)
            worst = max(worst, float(torch.linalg.matrix_norm(jacobian, ord=2)))
    return worst


@torch.no_grad()
def _edges(region: _Region) -> tuple[LayerEdges, ...]:
    network = region.model._need_token().network
    if not isinstance(network, KAN):
        return ()
    low, high = region.summaries()
    layers, reports = layers_of(network), []
    for number, layer in enumerate(layers):
        least, most = box_image(layers[:number], low, high)
        reports.append(
            LayerEdges(
                lemma=lemma_bounds(layer).tolist(),
                exact=exact_bounds(layer).tolist(),
                on_region=exact_bounds(layer, least.amin(0), most.amax(0)).tolist(),
            )
        )
    return tuple(reports)
