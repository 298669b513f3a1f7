"""SpectraKAN: a spectral trunk, conditioned on its input through one global token.

f = F_fine(u) [+ U_s F_coarse(D_s u)]                    gated axial trunk, with a coarse branch if it has layers
t = Phi_KAN(P(u))                                        global token (G-KAN)
A = sum_y softmax_y(<Q t, K f(y)> / d_a) V f(y)          global modulation (GML)
N(x) = R([f(x), A])                                      pointwise readout; the stages around N are every model's

Where fields evolve, the token is computed from how they do, and also acts on the layers of the trunk
(`nn/conditioning`). Without a token the model is AMFNO, the multi-scale gated Fourier operator of the paper's
ablation.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from spectrakan.config import Count, settings
from spectrakan.errors import ConfigError
from spectrakan.fields import Grid, OperatorSignature, Window
from spectrakan.models.operator import Operator
from spectrakan.nn.axis import Axis
from spectrakan.nn.block import BlockKind, BlockSettings, Mixing, SqueezeKind
from spectrakan.nn.conditioning import Conditioning, ConditioningKind
from spectrakan.nn.embedding import channels_first, channels_last, with_params
from spectrakan.nn.feed_forward import Readout
from spectrakan.nn.kan import Extension
from spectrakan.nn.modulation import GlobalModulation
from spectrakan.nn.multiscale import Branch, MultiscaleTrunk
from spectrakan.nn.token import NUM_ERRORS, GlobalToken, Pool, TokenKind, disturbed
from spectrakan.numerics.fourier import Basis

BOUNDED = {"wall", "dirichlet"}
"""Boundaries near which a field behaves differently than inside."""


@settings
class SpectraKANConfig:
    """Settings of trunk, token and modulation; symbols of the paper in parentheses."""

    width: Count = 32
    """Channels of the features (d, C_fno)."""
    num_modes: Count | Literal["auto"] = "auto"
    """Modes along each axis in the fine branch (m); "auto": 24 on one axis, 20 on several."""
    num_layers: Count = 4
    """Layers of the fine branch (L)."""
    coarse_num_layers: Annotated[int, Field(ge=0)] = 0
    """Layers of the coarse branch; 0: no coarse branch."""
    coarse_num_modes: Count = 8
    """Modes along each axis in the coarse branch."""
    coarse_mixing: Mixing = "joint"
    """Whether the coarse branch mixes low modes of all axes jointly, or along each axis (`axial`, the paper)."""
    stride: Annotated[int, Field(ge=2)] = 2
    """Fine cells per coarse cell along each axis (s)."""
    activation: Literal["gelu", "silu", "relu"] = "gelu"
    """Nonlinearity between layers (sigma)."""
    block: BlockKind | Literal["auto"] = "auto"
    """`plain` (the paper's letter), `skip` (with a pointwise path), `residual`, or "auto": residual where fields
    evolve, because a step in time is a small change, and skip where they are steady."""
    mlp_ratio: Count = 2
    """Hidden channels of a residual block's feed-forward network over `width`."""
    gates: bool = True
    """Whether each mode has a learnable gate (gamma)."""
    squeeze_excite: SqueezeKind | Literal["auto"] = "auto"
    """Squeeze-excitation on each spectral output: `none`, `plain` (the paper's: no biases, starts at 0.5), `open`
    (starts at 0.9), or "auto": open in plain and skip blocks, none in residual ones."""
    basis: Basis | Literal["auto"] | tuple[Basis, ...] = "auto"
    """Basis of the transforms: one for all axes, one for each, or by the signature's boundary."""
    coordinates: Literal["bounded", "all"] = "bounded"
    """Axes whose coordinates the lift receives: those with walls or held ends, or all of them. Along other axes the
    equations are the same everywhere."""
    readout_width: Count = 64
    """Hidden channels of the pointwise readout."""
    token: TokenKind = "kan"
    """Network that computes the token: `kan` (the paper), `mlp`, `raw` (the pooled numbers) or `none`."""
    pool: Pool | Literal["auto"] = "auto"
    """What the token is computed from (P): the field's `center` (the paper), its `mean`, `center+mean+std`,
    `dynamics` (mean and spread of the last frame and how the frames before led to it), or "auto": dynamics where
    fields evolve, the centre where they are steady."""
    token_width: Count = 32
    """Numbers in the token (C_kan), and width of its network's hidden layer."""
    spline_order: Annotated[int, Field(ge=1, le=5)] = 3
    """Order of the splines (k)."""
    num_intervals: Count = 5
    """Knot intervals of the splines (G)."""
    extension: Extension = "linear"
    """How splines continue beyond their grid: as straight lines, or to `zero` as in the paper."""
    use_gml: bool = True
    """Whether the token attends to the features (GML); else it enters the readout by a linear map."""
    attention_width: Count = 32
    """Width of queries, keys and values (d_a)."""
    conditioning: ConditioningKind | Literal["auto"] = "auto"
    """Where the token acts: in the `readout` alone (the paper), or also on the trunk's features (`film`), on the
    shift and damping of its Fourier modes (`transport`), on `both`, or "auto": both where fields evolve, the readout
    where they are steady."""

    def __post_init__(self) -> None:
        if self.conditioning not in ("auto", "readout") and self.token == "none":
            raise ConfigError(f"conditioning='{self.conditioning}' needs a token; set token='kan'")


class SpectraKAN(Operator):
    """The operator of the paper; see the file's equations."""

    name = "spectrakan"
    cuts_space = True
    config: SpectraKANConfig

    def _build(self) -> None:
        signature, config = self.signature, self.config
        fine = fine_blocks(signature, config)
        self.trunk = build_trunk(signature, config, fine)
        self.global_token = None
        pool: Pool = "dynamics" if signature.evolves else "center"
        pool = pool if config.pool == "auto" else config.pool
        if config.token != "none":
            self.global_token = GlobalToken(
                signature,
                kind=config.token,
                pool=pool,
                width=config.token_width,
                spline_order=config.spline_order,
                num_intervals=config.num_intervals,
                extension=config.extension,
            )
        token_width = self.global_token.width if self.global_token else 0
        value_width = config.attention_width if self.global_token else 0
        attends = self.global_token is not None and config.use_gml
        self.gml = GlobalModulation(config.width, token_width, value_width) if attends else None
        self.broadcast = None if attends or not self.global_token else nn.Linear(token_width, value_width)
        self.readout = Readout(config.width, value_width, config.readout_width, self.network_out_channels)
        self.conditioning = None
        conditioning: ConditioningKind = "both" if signature.evolves and config.token != "none" else "readout"
        conditioning = conditioning if config.conditioning == "auto" else config.conditioning
        if conditioning != "readout":
            axial = config.coarse_mixing == "axial"
            coarse = [config.coarse_num_modes if axial else 0] * config.coarse_num_layers
            modes = [fine.num_modes] * config.num_layers + coarse
            hidden = config.width * (config.mlp_ratio if fine.kind == "residual" else 1)
            self.conditioning = Conditioning(token_width, conditioning, hidden, config.width, fine.bases, modes)

    def _forward(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis]) -> Tensor:
        """Trunk, token, modulation and readout at unit scale."""
        token = self.global_token(history, params, axes) if self.global_token else None
        features = self._features(history, params, axes, token)
        return channels_last(self.readout(features, self._value(token, features, axes)))

    def token(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """The token t of physical inputs, `(B, token_width)`."""
        history, params = self.network_inputs(x, params)
        return cast(Tensor, self._need_token()(history, params, self.axes(history, grid)))

    def modulation(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """The global value A of physical inputs, `(B, attention_width)`."""
        token, features, axes = self.token_and_features(x, params, grid)
        return cast(Tensor, self._value(token, features, axes))

    def attention(self, x: Tensor, params: Tensor | None = None, grid: Grid | None = None) -> Tensor:
        """Attention weights of the token over the cells, `(B, 1, *space)`, summing to one."""
        token, features, axes = self.token_and_features(x, params, grid)
        if self.gml is None:
            raise ConfigError("this model has no attention: it was built with use_gml=False")
        return self.gml.weights(token, features, axes)

    def _fit_network(self, windows: Iterable[Window]) -> None:
        """The token's units and grids, fitted to summaries of the data, and of data whose frames err a little."""
        if self.global_token is None:
            return
        summaries, errors = [], range(NUM_ERRORS if self.global_token.pool == "dynamics" else 0)
        for window in windows:
            history, params = self.network_inputs(window.inputs, window.params)
            axes = self.axes(history, window.grid)
            seen = [history, *(disturbed(history, axes, seed) for seed in errors)]
            summaries.append(torch.stack([self.global_token.raw_summary(each, params, axes) for each in seen]))
        found = torch.cat(summaries, dim=1)
        self.global_token.fit(found[0], found[1:])

    def token_and_features(
        self, x: Tensor, params: Tensor | None, grid: Grid | None
    ) -> tuple[Tensor, Tensor, tuple[Axis, ...]]:
        """Token and trunk features of physical inputs, and the axes of their grid."""
        history, params = self.network_inputs(x, params)
        axes = self.axes(history, grid)
        token = self._need_token()(history, params, axes)
        return token, self._features(history, params, axes, token), axes

    def _features(self, history: Tensor, params: Tensor | None, axes: Sequence[Axis], token: Tensor | None) -> Tensor:
        conditions = () if self.conditioning is None or token is None else self.conditioning(token)
        return cast(Tensor, self.trunk(with_params(channels_first(history), params), axes, conditions))

    def _value(self, token: Tensor | None, features: Tensor, axes: Sequence[Axis]) -> Tensor | None:
        if self.gml is not None:
            return cast(Tensor, self.gml(token, features, axes))
        return None if self.broadcast is None else cast(Tensor, self.broadcast(token))

    def _need_token(self) -> GlobalToken:
        if self.global_token is None:
            raise ConfigError("this model has no token: it was built with token='none'")
        return self.global_token


@settings
class AMFNOConfig(SpectraKANConfig):
    """SpectraKAN's settings without a token."""

    token: Literal["none"] = "none"
    """There is no token."""


class AMFNO(SpectraKAN):
    """The trunk with its readout alone, under its own name."""

    name = "amfno"


def build_trunk(signature: OperatorSignature, config: SpectraKANConfig, fine: BlockSettings) -> MultiscaleTrunk:
    """The trunk of a config for a signature."""
    channels = signature.history * signature.in_channels + signature.num_params
    coarse, everywhere = None, config.coordinates == "all"
    # An axis of unknown boundary counts as bounded.
    boundary = signature.boundary or ("wall",) * signature.space_dims
    located = tuple(dim for dim, kind in enumerate(boundary) if everywhere or kind in BOUNDED)
    if config.coarse_num_layers:
        blocks = dataclasses.replace(fine, num_modes=config.coarse_num_modes, mixing=config.coarse_mixing)
        coarse = Branch(channels, config.coarse_num_layers, blocks, located)
    return MultiscaleTrunk(Branch(channels, config.num_layers, fine, located), coarse, config.stride)


def fine_blocks(signature: OperatorSignature, config: SpectraKANConfig) -> BlockSettings:
    """The blocks of the fine branch, with every "auto" resolved."""
    modes = (24 if signature.space_dims == 1 else 20) if config.num_modes == "auto" else config.num_modes
    kind: BlockKind = "residual" if signature.evolves else "skip"
    kind = kind if config.block == "auto" else config.block
    squeeze: SqueezeKind = "none" if kind == "residual" else "open"
    return BlockSettings(
        width=config.width,
        num_modes=modes,
        bases=bases_of(signature, config),
        kind=kind,
        gates=config.gates,
        squeeze_excite=squeeze if config.squeeze_excite == "auto" else config.squeeze_excite,
        mlp_ratio=config.mlp_ratio,
        activation=config.activation,
    )


def bases_of(signature: OperatorSignature, config: SpectraKANConfig) -> tuple[Basis, ...]:
    """The basis along each axis; "auto" follows the boundary, and takes Fourier where it is unknown."""
    if isinstance(config.basis, tuple):
        if len(config.basis) != signature.space_dims:
            raise ConfigError(f"basis names {len(config.basis)} axes, the signature has {signature.space_dims}")
        return config.basis
    if config.basis != "auto":
        return (config.basis,) * signature.space_dims
    boundary = signature.boundary or ("periodic",) * signature.space_dims
    return tuple("extended" if kind in BOUNDED else "fourier" for kind in boundary)
