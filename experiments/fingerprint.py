"""What a cell computes, in a few numbers: how code that was rewritten is compared with frozen code.

A fingerprint is that of a tiny training: the cell's settings on `SAMPLES` samples for one epoch of about `STEPS`
steps. It holds the losses and the norms of the gradients before the first steps, and the relative L2 of validation
rollouts after training and calibration. So it changes with equations, units, windows, models, stages, initial values,
loss, optimizer and calibration; faster code for the same formulas changes it by rounding alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import islice

from experiments.cells import Cell, case_settings, run_settings
from spectrakan.data.prepare import Prepared, prepare
from spectrakan.evaluation import evaluate
from spectrakan.training.assemble import build_session, calibrate_operator, training_windows
from spectrakan.training.loop import StepTaken, train_epochs
from spectrakan.training.runtime import started

SAMPLES = 8
STEPS = 4
TOLERANCE = 1e-3
"""Relative difference of losses and gradients that rounding may make."""
TRAINED_TOLERANCE = 2e-2
"""The same of the error after training: Adam's first steps have full length however small a gradient is."""


def fingerprint(cell: Cell) -> list[float]:
    """Losses of the first steps, norms of their gradients, and the error of the trained and calibrated model."""
    config, prepared = run_settings(cell), _samples(cell.scale, cell.case)
    batch_size = max(1, len(training_windows(config, prepared)) // STEPS)
    config = replace(config, training=replace(config.training, epochs=1, batch_size=batch_size))
    with started(config.runtime) as runtime:
        session = build_session(config, prepared, runtime)
        trained = train_epochs(session) if session.parameters else ()  # trivial baselines have no weights
        events = (event for event in trained if isinstance(event, StepTaken))
        steps = list(islice(events, STEPS))
        session.model.eval()
        calibrate_operator(session.model, config, prepared, runtime)
    part = prepared.parts["validation"]
    scores = evaluate(session.model, part.trajectories, horizon=prepared.horizon, samples=part.samples)
    losses, norms = [step.loss for step in steps], [step.gradient_norm for step in steps]
    return [*losses, *norms, scores["metrics"]["relative_l2"]]


def agree(found: Sequence[float], known: Sequence[float]) -> bool:
    """Whether two fingerprints differ by rounding alone.

    >>> agree([1.0, 2.0, 0.1], [1.0005, 2.0, 0.101]), agree([1.0, 2.0, 0.1], [1.01, 2.0, 0.1])
    (True, False)
    """
    limits = [TOLERANCE] * (len(known) - 1) + [TRAINED_TOLERANCE]
    return len(found) == len(known) and all(
        math.isclose(one, other, rel_tol=limit) for one, other, limit in zip(found, known, limits, strict=True)
    )


@cache
def _samples(scale: str, case: str) -> Prepared:
    """A few samples of a case, solved once for all models."""
    config = case_settings(scale, case)
    return prepare(config.task, replace(config.data, num_samples=SAMPLES, test_samples=0))
