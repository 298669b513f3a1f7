"""Where a training step of the default goes: its matrix products at this processor's best rate, and the rest.

The rate is that of a product of two square matrices of `SIDE`; nonlinearities are timed alone, on arrays that stay in
the cache. What is left are products below that rate, passes over arrays, and calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.operators import SIZES, default_model, inputs, training_step

SIDE = 1024
PIECE = 2**17
"""Numbers of an array on which the nonlinearity is timed."""
PASSES = 2
"""Forward passes through a nonlinearity: the backward pass computes the hidden channels again."""


class Seen(TorchFunctionMode):
    """A mode that sees every torch function and changes none."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The function as it is."""
        return func(*args, **(kwargs or {}))


def best(run: Callable[[], object], rounds: int) -> float:
    """Least CPU seconds of a call: what the processor can do when others leave it alone."""
    found = []
    for _ in range(rounds + 1):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found[1:])


def shares(rounds: int) -> dict[str, object]:
    """Gigaflops a second of a large product, and by size: gigaflops and seconds of a step, and of its parts."""
    square, hidden, slope = torch.randn(SIDE, SIDE), torch.randn(PIECE), torch.randn(PIECE)
    rate = 2 * SIDE**3 / best(lambda: square @ square, rounds) / 1e9
    forward = best(lambda: torch.nn.functional.gelu(hidden), rounds) / PIECE
    backward = best(lambda: torch.ops.aten.gelu_backward(slope, hidden), rounds) / PIECE
    model, rows = default_model(), []
    blocks = model.config.num_layers * model.config.mlp_ratio * model.config.width + model.config.readout_width
    for cells, batch in SIZES:
        field = inputs(model, cells, batch)
        step = training_step(model, field)
        # The counter knows torch's own products: a mode that sees every function has layers take their plain forms.
        with FlopCounterMode(display=False) as counter, Seen():
            model(field).square().mean().backward()
        count = counter.get_total_flops() / 1e9
        nonlinear = blocks * batch * cells**2 * (PASSES * forward + backward)
        rows.append(
            {
                "cells": cells,
                "gigaflops": count,
                "products": count / rate,
                "nonlinearities": nonlinear,
                "seconds": best(step, rounds),
            }
        )
    return {"rate": rate, "rows": rows}
