"""The default model's training step under torch.compile on the CPU: one graph without breaks, and its time."""

from __future__ import annotations

import time

import torch
import torch._dynamo
from torch import Tensor

from benchmarks.operators import default_model, inputs
from benchmarks.timing import interleaved

CELLS, BATCH = 64, 16


def against_eager(rounds: int) -> dict[str, float]:
    """Seconds of a step compiled whole (`fullgraph=True` raises at a graph break) and eager, and of compiling."""
    model = default_model()
    field, optimizer = inputs(model, CELLS, BATCH), torch.optim.AdamW(model.parameters(), lr=1e-5)

    def loss(field: Tensor) -> Tensor:
        result: Tensor = model(field).square().mean()
        return result

    model(field[:1])  # the warning of an unfitted model is not part of the graph
    breaks = torch._dynamo.explain(loss)(field).graph_break_count
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True)

    def step(function: object) -> None:
        assert callable(function)
        optimizer.zero_grad()
        function(field).backward()
        optimizer.step()

    begin = time.perf_counter()
    step(compiled)
    compiling = time.perf_counter() - begin
    cases = {"compiled": lambda: step(compiled), "eager": lambda: step(loss)}
    return {"breaks": breaks, "compiling": compiling, **interleaved(cases, rounds=max(3, rounds // 2))}
