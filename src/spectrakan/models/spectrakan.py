"""SpectraKAN: a spectral trunk, conditioned on its input through one global token.

f = F_fine(u) + U_s F_coarse(D_s u)          multi-scale gated axial trunk (AMFNO)
t = Phi_KAN(P(u))                            global token (G-KAN)
A = sum_y softmax_y(<Q t, K f(y)>/c) V f(y)              what the token pulls out of the features (GML)
u_next(x) = G (R([f(x), A]) [+ H t])         pointwise readout, gates on its modes; a token may answer directly too,
                                             and R may be a sum and a product with the last frame, R_0 + R_1 u(x)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import settings
from spectrakan.errors import ConfigError
from spectrakan.fields import Grid, OperatorSignature, Window
from spectrakan.models.amfno import (
    AMFNOConfig,
    Count,
    bases_of,
    build_trunk,
    fit_memory,
    prediction_of,
    with_params,
)
from spectrakan.models.refining import RefiningOperator
from spectrakan.nn.axis import Axis
from spectrakan.nn.block import Mixing
from spectrakan.nn.conditioned_gates import ConditionedGates
from spectrakan.nn.embedding import channels_first, channels_last
from spectrakan.nn.kan import KAN, Extension
from spectrakan.nn.modulation import GlobalModulation, Scaling
from spectrakan.nn.readout import Readout, add_everywhere
from spectrakan.nn.token import GlobalToken, Pool, TokenKind, TokenSettings
from spectrakan.numerics.fourier import Basis, stored_modes


@settings
class SpectraKANConfig(AMFNOConfig):
    """Choices of the trunk, the token, the modulation and their fusion; symbols of the paper in parentheses."""

    token: TokenKind = "kan"
    """Network that makes the token: `kan` (the paper), `mlp`, `raw` (the pooled numbers) or `none`."""
    pool: Pool = "center"
    """What the token is made of (P): the field's `center`, its `mean`, or `center+mean+std`."""
    token_width: Count = 32
    """Numbers in the token (C_kan)."""
    token_hidden: Count = 32
    """Width of the token network's hidden layer."""
    spline_order: Annotated[int, Field(ge=1, le=5)] = 3
    """Order of the splines (k)."""
    num_intervals: Count = 5
    """Knot intervals of the splines (G)."""
    extension: Extension = "linear"
    """How splines go on beyond their grid: straight on, or to `zero` as in the paper."""
    use_gml: bool = True
    """Whether the token asks the features (GML); else it is broadcast into the readout by a linear map."""
    attention_width: Count = 32
    """Width of queries, keys and values (d_a)."""
    attention_scaling: Scaling = "root"
    """What scores are divided by (c): the `root` of `attention_width`, or the `width` itself; the paper has both."""
    num_heads: Count = 1
    """Attention heads; the paper has one."""
    fusion: Literal["readout", "sum"] = "readout"
    """Whether the readout gets features and global value side by side, or their sum f + A."""
    token_answers: bool = False
    """Whether the token, if there is one, adds to the answer directly too, by a linear map, the same in all cells."""
    field_factors: bool = False
    """Whether the readout also gives each field a factor of its own last frame, for equations multiply fields."""
    gate_conditioning: Literal["none", "token"] = "none"
    """Whether the token also scales the spectral gates, which axial layers have and joint ones do not."""

    def __post_init__(self) -> None:
        if self.gate_conditioning == "token" and (self.token == "none" or not self.gates):
            raise ConfigError("gate_conditioning='token' needs a token and gates")
        kinds = {self.mixing, *([self.coarse_mixing] if self.coarse else [])}
        if self.gate_conditioning == "token" and kinds == {"joint"}:
            raise ConfigError("gate_conditioning='token' needs axial layers: joint ones have no gates")


class SpectraKAN(RefiningOperator):
    """The operator of the paper; see the file's equations."""

    name = "spectrakan"
    config: SpectraKANConfig

    def __init__(self, signature: OperatorSignature, config: SpectraKANConfig) -> None:
        super().__init__(
            signature,
            config,
            predict=prediction_of(signature, config),
            refines=config.coarser_cells == "refine",
            answer_error=config.answer_error,
            gate_modes=config.num_modes,
        )
        self.trunk = build_trunk(signature, config)
        self.global_token = _build_token(signature, config)
        token_width = self.global_token.width if self.global_token else 0
        value_width = config.width if config.fusion == "sum" else config.attention_width
        asks = self.global_token is not None and config.use_gml
        self.gml = (
            GlobalModulation(
                config.width,
                token_width,
                config.attention_width,
                num_heads=config.num_heads,
                value_width=value_width,
                scaling=config.attention_scaling,
            )
            if asks
            else None
        )
        self.broadcast = None if asks or not self.global_token else nn.Linear(token_width, value_width)
        heads = config.num_heads if asks else 1
        # The sum f + A needs A of the features' width: heads are brought together by one more map.
        self.merge = nn.Linear(heads * value_width, config.width) if config.fusion == "sum" and heads > 1 else None
        beside = heads * value_width if self.global_token and config.fusion == "readout" else 0
        fields = signature.out_channels
        if config.field_factors and not signature.evolves:
            raise ConfigError("field_factors=True needs fields that evolve: a steady answer has no last frame")
        self.readout = Readout(config.width, beside, config.readout_width, (1 + config.field_factors) * fields)
        with torch.no_grad():  # factors are silent before training
            self.readout.out.weight[fields:] = self.readout.out.bias[fields:] = 0.0
        answers = config.token_answers and self.global_token is not None
        self.answer = nn.Linear(token_width, signature.out_channels, bias=False) if answers else None
        if self.answer is not None:
            nn.init.zeros_(self.answer.weight)  # silent before training
        self.gate_map = _build_gate_map(signature, config, token_width)

    def respond(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Trunk, token, modulation and readout at unit scale."""
        token = self.global_token(history, params, axes) if self.global_token else None
        features = self._features(history, params, axes, token)
        value = self._value(token, features, axes)
        if value is not None and self.config.fusion == "sum":
            features, value = add_everywhere(features, self._merged(value)), None
        answer = self.readout(features, value)
        if self.config.field_factors:
            added, factors = answer.chunk(2)
            answer = torch.addcmul(added, factors, history[:, -1].movedim(-1, 0))
        if self.answer is not None:
            answer = add_everywhere(answer, self.answer(token))
        return channels_last(answer)

    def token(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """The token t of physical inputs, `(B, token_width)`."""
        history, params = self._checked(x, params)
        token: Tensor = self._need_token()(history, params, self.axes(history, grid))
        return token

    def modulation(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """The global value A of physical inputs, `(B, num_heads * attention_width)`."""
        history, params = self._checked(x, params)
        axes = self.axes(history, grid)
        token = self._need_token()(history, params, axes)
        value = self._value(token, self._features(history, params, axes, token), axes)
        if value is None:
            raise ConfigError("this model has no modulation: it was built with token='none'")
        return value

    def attention(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """Attention weights over the cells, `(B, num_heads, *space)`, summing to one: where the token looks."""
        history, params = self._checked(x, params)
        axes = self.axes(history, grid)
        token = self._need_token()(history, params, axes)
        if self.gml is None:
            raise ConfigError("this model has no attention: it was built with use_gml=False")
        return self.gml.weights(token, self._features(history, params, axes, token), axes)

    @torch.no_grad()
    def prepare(self, windows: Iterable[Window]) -> None:
        """Size of increments, and the splines' grids fitted to the tokens' inputs."""
        windows = list(windows)
        super().prepare(windows)
        fit_memory(self, self.trunk, self.config, windows)
        if self.global_token is None or not windows:
            return
        summaries = []
        for window in windows:
            history, params = self._checked(window.inputs, window.params)
            summaries.append(self.global_token.summary(history, params, self.axes(history, window.grid)))
        self.global_token.fit_grid(torch.cat(summaries))

    def refine_token(self, num_intervals: int) -> None:
        """Give the token's splines more intervals without changing the function."""
        if self.global_token is None or not isinstance(self.global_token.network, KAN):
            raise ConfigError("only a model with token='kan' has splines to refine")
        self.global_token.network.refine(num_intervals)
        self.config = dataclasses.replace(self.config, num_intervals=num_intervals)

    def _features(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis], token: Tensor | None) -> Tensor:
        factors = self.gate_map(token) if self.gate_map is not None and token is not None else None
        features: Tensor = self.trunk(with_params(channels_first(history), params), axes, factors)
        return features

    def _value(self, token: Tensor | None, features: Tensor, axes: Sequence[Axis]) -> Tensor | None:
        if token is None:
            return None
        value: Tensor | None = None
        if self.gml is not None:
            value = self.gml(token, features, axes)
        elif self.broadcast is not None:
            value = self.broadcast(token)
        return value

    def _merged(self, value: Tensor) -> Tensor:
        return value if self.merge is None else self.merge(value)

    def _need_token(self) -> GlobalToken:
        if self.global_token is None:
            raise ConfigError("this model has no token: it was built with token='none'")
        return self.global_token

    def _checked(self, x: Tensor, params: Tensor | None) -> tuple[Tensor, Tensor | None]:
        self._check(x, params)
        return self.normalized(x, params)


def _build_token(signature: OperatorSignature, config: SpectraKANConfig) -> GlobalToken | None:
    if config.token == "none":
        return None
    choices = TokenSettings(
        kind=config.token,
        pool=config.pool,
        width=config.token_width,
        hidden=config.token_hidden,
        spline_order=config.spline_order,
        num_intervals=config.num_intervals,
        extension=config.extension,
    )
    return GlobalToken(signature.history * signature.in_channels, signature.num_params, choices)


def _build_gate_map(
    signature: OperatorSignature, config: SpectraKANConfig, token_width: int
) -> ConditionedGates | None:
    if config.gate_conditioning == "none":
        return None
    bases = bases_of(signature, config)
    fine = [_gates(bases, config.num_modes, config.mixing)] * config.num_layers
    coarse = [_gates(bases, config.coarse_num_modes, config.coarse_mixing)] * config.coarse_num_layers
    return ConditionedGates(token_width, fine + (coarse if config.coarse else []))


def _gates(bases: Sequence[Basis], num_modes: int, mixing: Mixing) -> list[int]:
    """How many gates a layer has along each axis; none where modes are mixed jointly."""
    return [] if mixing == "joint" else [stored_modes(basis, num_modes) for basis in bases]
