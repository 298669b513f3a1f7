"""A model's own forward pass as an affine program: nonlinear operations become their linear parts plus errors.

While a model runs, every torch function is looked at. An argument varies if it requires a gradient.
    linear       in the arguments that vary (`LINEAR`; `FACTORS` with one factor that varies): runs as it is,
    nonlinear    becomes a node (`rules`): out = f(h_0) + l (h - h_0) + e, h_0 at the centre, e an input,
    other        is refused: a new operation brings a rule with it, or its model is not certified.
The program is affine in the model's input and in all e, so that nothing of the forward pass is written down twice:
its Jacobians come from autograd. Layers of a KAN are nodes as a whole.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from spectrakan.errors import ConfigError
from spectrakan.models.stages import UNLIMITED
from spectrakan.nn.kan import KANLayer
from spectrakan.nn.summary import ridge, turns
from spectrakan.nn.token import root_mean_square, space_mean
from spectrakan.theory.rules import Curve, Edges, Pool, Product, Rule, centred_scores
from spectrakan.theory.slopes import FUNCTIONS, edge_pieces
from spectrakan.theory.summary_rules import Ridge, Spread, Turns

Run = Callable[[Tensor], Mapping[str, Tensor]]
"""From a batch of inputs to named quantities."""

LINEAR = {
    "add", "add_", "sub", "sub_", "__rsub__", "neg", "sum", "mean", "cat", "stack", "clone", "to", "contiguous",
    "diff", "diagonal", "flatten", "unflatten", "view", "reshape", "permute", "transpose", "movedim", "unsqueeze",
    "squeeze", "expand", "expand_as", "narrow", "chunk", "split", "unbind", "index_select", "__getitem__",
    "new_zeros", "new_empty", "new_ones", "zeros_like", "ones_like", "size", "dim", "numel", "__len__",
}  # fmt: skip
"""Linear in all tensors together, or independent of their values."""
READ = {
    "shape", "dtype", "device", "ndim", "T", "mT", "requires_grad", "is_leaf", "layout", "grad_fn", "_backward_hooks",
}  # fmt: skip
"""Attributes that may be read."""
FACTORS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(["mul", "matmul", "bmm", "mm", "linear", "tensordot"], (0, 1)),
    **dict.fromkeys(["addmm", "addmm_", "baddbmm_", "addcmul", "einsum"], (1, 2)),
    "div": (1,),
    "lerp": (2,),
}
"""Places of the factors: linear if at most one of two varies; a divisor and the share of `lerp` must not."""
PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mul": torch.mul,
    "addcmul": torch.mul,
    "bmm": torch.matmul,
    "matmul": torch.matmul,
}
"""Products that are nodes where both factors vary, in a form that broadcasts over the batch."""
WHOLE: dict[str, Callable[..., Rule]] = {ridge.__name__: Ridge, turns.__name__: Turns}
"""Functions of the library that are nodes as a whole."""
NARROW = 2048
"""Most numbers a sample of a result through which others are seen to depend on the input."""


class Program(TorchFunctionMode):
    """The program of a run around a centre `(1, ...)`; `layers` are the KAN layers that the run calls."""

    def __init__(self, run: Run, centre: Tensor, layers: Sequence[KANLayer]) -> None:
        super().__init__()
        self._run, self.centre = run, centre
        self.rules: list[Rule] = []
        self._errors: Mapping[int, Tensor] = {}
        self.calls: list[tuple[Tensor, ...]] = []
        """Of the last run and every node: its inputs, then its output."""
        self.trail: list[Tensor] = []
        """Of the last run: results of linear operations with at most `NARROW` numbers a sample."""
        self._weights: list[Tensor] = []
        self._last = -1
        self._tied = [(layer, self._layer_node(layer)) for layer in layers]
        alone = self.values(centre)
        one, trail = [*self.calls], [*self.trail]
        uses: dict[int, tuple[int, int]] = {}
        self.first_use = [
            [uses.setdefault(id(each), (number, place)) for place, each in enumerate(call[:-1])]
            for number, call in enumerate(one)
        ]
        """Of every node and input: the first node and place that the same tensor enters."""
        both = self.values(centre.expand(2, *centre.shape[1:]))
        self.node_dims = [
            [_batch_dim(*pair) for pair in zip(first, second, strict=True)]
            for first, second in zip(one, self.calls, strict=True)
        ]
        """Of every node: the place of the batch in each input, then in the output."""
        self._trail_shapes = [
            (one.shape, _batch_places(one, two)) for one, two in zip(trail, self.trail, strict=False)
        ]
        self.targets = {name: value.detach() for name, value in alone.items()}
        self.target_dims = {name: _batch_dim(alone[name], both[name]) for name in alone}

    def run_until(self, number: int, inputs: Tensor, errors: Mapping[int, Tensor]) -> None:
        """Run up to a node; `calls` ends with its inputs."""
        self._last = number
        try:
            self.values(inputs, errors)
        except _ReachedError:
            pass
        finally:
            self._last = -1

    def values(self, inputs: Tensor, errors: Mapping[int, Tensor] | None = None) -> Mapping[str, Tensor]:
        """The run's quantities for a batch of inputs, and errors of some nodes."""
        self._errors, self._count = errors or {}, 0
        self.calls, self._soft = [], dict[int, tuple[Tensor, Tensor]]()
        self.trail, self._samples = [], inputs.shape[0]
        self._pools = 0
        for layer, tied in self._tied:
            layer.__dict__["feature_major"] = tied
        try:
            with torch.enable_grad(), self:
                return self._run(inputs if inputs.requires_grad else inputs.detach().clone().requires_grad_())
        finally:
            for layer, _ in self._tied:
                del layer.__dict__["feature_major"]

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run a function as it is, as a node, or refuse it."""
        options = kwargs or {}
        flat = [each for part in (*args, *options.values()) for each in (part if _many(part) else (part,))]
        varying = [each for each in flat if isinstance(each, Tensor) and each.requires_grad]
        attribute = func.__name__ in ("__get__", "__set__")
        name = func.__self__.__name__ if attribute else func.__name__.split(".")[0]
        if not varying or (attribute and name in READ):
            return func(*args, **options)
        product = [args[place] for place in FACTORS.get(name, ()) if place < len(args) and _varies(args[place])]
        if any(id(each) in self._soft for each in varying) and not (len(product) == 2 and name in PRODUCTS):
            raise _refusal(f"'{name}' of a softmax")
        if name in WHOLE:
            return self.node(WHOLE[name], *args)
        if name == root_mean_square.__name__:
            axes = args[1]
            return self.node(partial(Spread, lambda x: func(x, axes), partial(space_mean, axes=axes)), args[0])
        if name in LINEAR or (name in FACTORS and len(product) < len(FACTORS[name])):
            out = func(*args, **options)
            if isinstance(out, Tensor) and out.requires_grad and out.numel() <= NARROW * self._samples:
                self.trail.append(out)
            return out
        if name in ("div", "__rtruediv__", "__rdiv__") and _varies(args[1 if name == "div" else 0]):
            over, under = args if name == "div" else args[::-1]
            inverse = self.node(lambda centre: Curve("reciprocal", centre), under)
            return self._product(torch.mul, over, inverse) if _varies(over) else over * inverse
        if len(product) == 2 and name in PRODUCTS:
            out = self._product(PRODUCTS[name], *product)
            return args[0] + out if name == "addcmul" else out
        if name == "clamp" and all(
            isinstance(end, Tensor) and not _varies(end) for end in args[1:]
        ):  # two rectifiers
            out = args[0]
            for end, sign in zip(args[1:], (1, -1), strict=True):
                known = end.abs() < UNLIMITED
                if known.any():
                    beyond = sign * known * (end.where(known, 0) - args[0])
                    out = out + sign * self.node(lambda centre: Curve("relu", centre), beyond)
            return out
        if name == "softmax" and (options.get("dim", args[-1])) == -1:
            weights = func(*args, **options)
            if self._pools == len(self._weights):
                self._weights.append(weights.detach())
            self._soft[id(weights)] = (weights, centred_scores(args[0], self._weights[self._pools]))
            self._pools += 1
            return weights
        if (
            name.rstrip("_") in FUNCTIONS
            and not options.get("inplace")
            and options.get("approximate", "none") == "none"
        ):
            return self.node(lambda centre: Curve(name.rstrip("_"), centre), args[0])
        raise _refusal(f"'{name}' of {len(varying)} tensors that vary")

    def _layer_node(self, layer: KANLayer) -> Callable[[Tensor], Tensor]:
        """The layer's map as a node."""
        make = partial(Edges, layer, edge_pieces(layer))

        def mapped(x: Tensor) -> Tensor:
            with torch._C.DisableTorchFunction():
                return self.node(make, x)

        return mapped

    def _product(self, operation: Callable[[Tensor, Tensor], Tensor], first: Tensor, second: Tensor) -> Tensor:
        if id(first) in self._soft:
            return self.node(Pool, self._soft[id(first)][1], second)
        return self.node(lambda one, two: Product(operation, one, two), first, second)

    def narrowest(self, value: Tensor, leaves: Sequence[Tensor]) -> tuple[Tensor, int] | None:
        """The smallest result in `trail` through which alone a value of the last run depends on leaves; its batch."""
        for tensor, (shape, places) in sorted(
            zip(self.trail, self._trail_shapes, strict=False), key=lambda pair: pair[0].numel()
        ):
            if len(places) != 1 or tensor.numel() >= value.numel():
                continue
            expected = [*shape[: places[0]], self._samples, *shape[places[0] + 1 :]]
            if [*tensor.shape] == expected and _separates(tensor, value, leaves):
                return tensor, places[0]
        return None

    def node(self, make: Callable[..., Rule], *inputs: Tensor) -> Tensor:
        """The value of the next node; its rule is made in the first run."""
        number, self._count = self._count, self._count + 1
        if number == len(self.rules):
            self.rules.append(make(*(each.detach() for each in inputs)))
        if number == self._last:
            self.calls.append(inputs)
            raise _ReachedError
        rule = self.rules[number]
        out = rule.out + rule.linear(*(each - centre for each, centre in zip(inputs, rule.centres, strict=True)))
        if number in self._errors:
            out = out + self._errors[number]
        self.calls.append((*inputs, out))
        return out


class _ReachedError(Exception):
    """A run has reached its last node."""


def _batch_places(one: Tensor, two: Tensor) -> list[int]:
    if one.ndim != two.ndim:
        return []
    return [dim for dim, sizes in enumerate(zip(one.shape, two.shape, strict=True)) if sizes == (1, 2)]


def _batch_dim(one: Tensor, two: Tensor) -> int:
    """Where the batch is, from the shapes for one sample and for two."""
    places = _batch_places(one, two)
    if len(places) != 1:
        raise _refusal(f"a node whose batch is no axis of its own, shapes {tuple(one.shape)} and {tuple(two.shape)}")
    return places[0]


def _separates(middle: Tensor, value: Tensor, leaves: Sequence[Tensor]) -> bool:
    """Whether every path of the graph from leaves to a value leads through `middle`."""
    sources, seen, stack = {id(leaf) for leaf in leaves}, set[Any](), [(value.grad_fn, value.output_nr)]
    end = middle.grad_fn, middle.output_nr
    while stack:
        step = stack.pop()
        if step == end or step[0] is None or step[0] in seen:
            continue
        seen.add(step[0])
        if id(getattr(step[0], "variable", None)) in sources:
            return False
        stack += step[0].next_functions
    return True


def _many(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _varies(value: Any) -> bool:
    return any(isinstance(each, Tensor) and each.requires_grad for each in (value if _many(value) else (value,)))


def _refusal(what: str) -> ConfigError:
    return ConfigError(f"no bound is known for {what}, so this model cannot be certified; add a rule to theory/rules")
