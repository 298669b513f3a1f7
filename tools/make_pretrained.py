"""Train, score and write the models that ship with the package.

    python tools/make_pretrained.py droplet2d-small --minutes 10        one of them, with its card
    python tools/make_pretrained.py droplet2d-small --against fno       a baseline of the same training time
    python tools/make_pretrained.py droplet2d-small --score             scores and card again, from its weights
    python tools/make_pretrained.py droplet2d-small --certify 6         certificate around 6 inputs, and card again
    python tools/make_pretrained.py cards                               all cards again, from the scores

Times are of one core (`time.process_time`, one thread), so that a busy machine trains as long as an idle one.
Scores go to NAME.json beside the folder of weights; the card, NAME.md, is written from them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pretrained_card as card
import pretrained_data as data
import torch
from pool import averaged
from torch import Tensor

import spectrakan as sk
from spectrakan.models.operator import Operator
from spectrakan.theory import AttackSettings, certify_radii
from spectrakan.training.presets import size_of

TARGET = Path(__file__).resolve().parents[1] / "src" / "spectrakan" / "pretrained"
WATER = ("rho", "velocity_x", "velocity_y")
CACHE = TARGET.parents[2] / "build" / "pretrained"
"""Where data are kept between the calls of this tool."""
STEPS, COVERAGE = 50, 0.9
RATE, WEIGHT_DECAY, AVERAGE = 5e-3, 1e-5, 0.998
FRESH, FRESH_SEED, CERTIFIED, THINNED, RADII = 20, 1000, 3, 4, (0.01, 0.001)
"""Samples that no training saw, their seed, how many and which cells of them are certified, and the regions' radii.

Work grows with the third power of the cells: bounds on 16 x 16 take an hour."""
READOUT = {"conditioning": "readout", "pool": "center+mean+std"}
"""The form of the token of all shipped models."""


@dataclass(frozen=True)
class Plan:
    """A shipped model: its operator's signature, its settings, its data and how batches are drawn."""

    task: str
    signature: dict[str, Any]
    model: dict[str, Any]
    make: data.Maker
    samples: int
    batches: dict[int, tuple[int, float]]
    """Cells per axis -> samples of a batch, and the share of batches."""
    unroll: int = 1
    minutes: float = 6.0


PLANS = {
    "droplet2d-small": Plan(
        task="droplet2d",
        signature={"space_dims": 2, "history": 1, "in_channels": 3, "out_channels": 3, "boundary": ("wall", "wall"),
                   "in_fields": WATER, "out_fields": WATER},
        model={"width": 24, "num_modes": 16, "token_width": 24, "attention_width": 24, **READOUT},
        make=data.water_data,
        samples=240,
        batches={32: (8, 0.6), 64: (3, 0.3), 128: (1, 0.1)},
        unroll=3,
    ),
    "darcy2d-small": Plan(
        task="darcy2d",
        signature={"space_dims": 2, "history": 1, "in_channels": 1, "out_channels": 1,
                   "boundary": ("dirichlet", "dirichlet"), "steady": True, "in_fields": ("coefficient",),
                   "out_fields": ("pressure",)},
        model={"width": 32, "num_modes": 16, **READOUT},
        make=data.rock_data,
        samples=4000,
        batches={64: (6, 0.7), 32: (12, 0.3)},
        minutes=12.0,
    ),
    "cns1d-small": Plan(
        task="cns1d",
        signature={"space_dims": 1, "history": 1, "in_channels": 3, "out_channels": 3, "boundary": ("periodic",),
                   "in_fields": ("density", "velocity", "pressure"),
                   "out_fields": ("density", "velocity", "pressure")},
        model={"width": 40, "num_modes": 24, **READOUT},
        make=data.gas_data,
        samples=800,
        batches={128: (32, 1.0)},
        unroll=3,
        minutes=12.0,
    ),
}  # fmt: skip


def batches(sets: data.Frames, plan: Plan, generator: torch.Generator) -> Iterator[Tensor]:
    """Windows `(B, 1 + unroll, *space, C)` at a drawn resolution, without end."""
    kinds = list(plan.batches)
    shares = torch.tensor([plan.batches[cells][1] for cells in kinds])
    while True:
        cells = kinds[int(torch.multinomial(shares, 1, generator=generator))]
        frames = sets[cells]
        chosen = torch.randint(len(frames), (plan.batches[cells][0],), generator=generator)
        first = torch.randint(frames.shape[1] - plan.unroll, (len(chosen),), generator=generator)
        if plan.unroll == 1:
            first.zero_()
        window = torch.stack([frames[n, f : f + 1 + plan.unroll] for n, f in zip(chosen, first, strict=True)])
        yield _mirrored(window, plan, generator)


def _mirrored(window: Tensor, plan: Plan, generator: torch.Generator) -> Tensor:
    """Reflected and transposed copies: the box, its walls and its equation have these symmetries."""
    flips = [bool(torch.rand((), generator=generator) < 0.5) for _ in range(3)]
    moves = plan.task != "darcy2d"
    for axis in range(plan.signature["space_dims"]):
        if flips[axis]:
            window = window.flip(2 + axis)
            if moves:
                sign = torch.ones(window.shape[-1])
                sign[1 + axis] = -1.0
                window = window * sign
    if plan.signature["space_dims"] == 2 and flips[2]:
        window = window.transpose(2, 3)
        window = window[..., [0, 2, 1]] if moves else window
    return window


def loss_of(model: Operator, window: Tensor, evolves: bool) -> Tensor:
    """Relative L2 error at unit scale, mean over unrolled frames; calm states count as much as rough ones."""
    total, state = torch.zeros(()), window[:, :1]
    for step in range(1, window.shape[1]):
        given = model(state)
        target = model.output_units.normalize(window[:, step])
        wrong = (model.output_units.normalize(given) - target).flatten(1).norm(dim=1)
        change = target - model.output_units.normalize(window[:, 0]) if evolves else target
        total = total + (wrong / (change.flatten(1).norm(dim=1) + 0.02 * math.sqrt(change[0].numel()))).mean()
        state = given[:, None]
    return total / (window.shape[1] - 1)


def train(name: str, model: Operator, sets: data.Frames, minutes: float, seed: int = 0) -> dict[str, Any]:
    """Fit the weights for some minutes of one core: AdamW, a rise and a cosine, an average of the weights."""
    plan, generator = PLANS[name], torch.Generator().manual_seed(seed)
    finest = max(plan.batches, key=lambda cells: plan.batches[cells][1])
    some = sets[finest][:: max(1, len(sets[finest]) // 300)]
    model.fit_statistics(some[:, :1].contiguous(), some[:, 1:2].contiguous())
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY)
    average = {key: value.detach().clone() for key, value in model.named_parameters()}
    begin, recent = time.process_time(), 0.0
    for steps, window in enumerate(batches(sets, plan, generator), start=1):
        share = (time.process_time() - begin) / (60 * minutes)
        if share >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(share / 0.05 + 0.01, 0.5 * (1 + math.cos(math.pi * share)))
        # Unrolled frames only after a third of the time, when single steps are learnt.
        window = window if share > 0.35 else window[:, :2]
        loss = loss_of(model, window, model.signature.evolves)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        for key, value in model.named_parameters():
            average[key].lerp_(value.detach(), max(1 - AVERAGE, 1 / steps))
        now = float(loss.detach())
        recent = 0.99 * recent + 0.01 * now if steps > 1 else now
        if steps % 200 == 0:
            print(f"{name} {model.name} {100 * share:3.0f} % step {steps} loss {recent:.4f}", flush=True)
    model.load_state_dict({**model.state_dict(), **average})
    model.eval()
    return {"minutes": minutes}


def build(name: str, kind: str) -> Operator:
    """The model of a plan, or a baseline at the size of the presets."""
    plan = PLANS[name]
    signature = sk.OperatorSignature(**plan.signature)
    torch.manual_seed(0)
    settings = plan.model if kind == "spectrakan" else size_of(kind, signature.space_dims)
    return sk.build_model(kind, signature, **settings)


@torch.no_grad()
def frame_errors(model: Operator, start: Tensor, truth: Tensor) -> Tensor:
    """Relative L2 error of each frame of a rollout, departures from the mean counted: `(B, T)`.

    All fields at the units of the training data; the denominator is the truth's departure from still water, or from
    its mean, of the first frame, because late frames are nearly still.
    """
    given = sk.rollout(model, start, truth.shape[1], batch_size=20)
    units = model.output_units.normalize
    wrong = (units(given) - units(truth)).flatten(2).norm(dim=2)
    return wrong / units(truth).flatten(2).norm(dim=2)


def physical_errors(model: Operator, start: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Relative L2 error of the first field (depth) and of its departure from the mean: `(B, T)` each."""
    with torch.no_grad():
        given = sk.rollout(model, start, truth.shape[1], batch_size=20)[..., 0]
    true = truth[..., 0]
    wrong = (given - true).flatten(2).norm(dim=2)
    waves = (true - true.mean((2, 3), keepdim=True)).flatten(2).norm(dim=2)
    return wrong / true.flatten(2).norm(dim=2), wrong / waves[:, :1]


def score_water(model: Operator, pools: int = 200) -> dict[str, Any]:
    """Errors over 50 frames from fresh multi-drop states, at three resolutions, with a conformal band."""
    scores: dict[str, Any] = {}
    for cells, frames in data.kept(CACHE / f"fresh{pools}", lambda: data.fresh_pools(pools, STEPS)).items():
        start, true = frames[:, :1], frames[:, 1:]
        depth, waves = physical_errors(model, start, true)
        every = frame_errors(model, start, true)
        scores[str(cells)] = {
            "states": len(start),
            "relative_l2": _rounded(depth.mean()),
            "relative_l2_all_fields": _rounded(every.mean()),
            "relative_l2_last_frame": _rounded(depth[:, -1].mean()),
            "relative_to_first_wave": _rounded(waves.mean()),
            "worst_state": _rounded(depth.mean(1).max()),
        }
    return scores


def band_water(model: Operator, cells: int = 32) -> dict[str, Any]:
    """90 % conformal band of the depth's relative L2 error against frames, in pools touched at random."""
    scores, drift = [], []
    for seed in range(5):
        segments = data.touched_pools(20, 8, 20_000 + seed)
        state, errors, masses = averaged(segments[0][:, 0], cells).float(), [], []
        level = state[..., 0].mean((1, 2))
        for number, segment in enumerate(segments):
            true = averaged(segment, cells).float()
            if number:
                before = averaged(segments[number - 1][:, -1], cells).float()
                rho = state[..., 0] + (true[:, 0, ..., 0] - before[..., 0])
                state = torch.cat([rho[..., None], state[..., 1:] * (state[..., 0] / rho)[..., None]], -1)
            with torch.no_grad():
                for step in range(1, segment.shape[1]):
                    state = model(state[:, None])
                    wrong = (state[..., 0] - true[:, step, ..., 0]).flatten(1).norm(dim=1)
                    errors.append(wrong / true[:, step, ..., 0].flatten(1).norm(dim=1))
                    masses.append(state[..., 0].mean((1, 2)) / level - 1)
        scores.append(torch.stack(errors, 1))
        drift.append(torch.stack(masses, 1))
    every = torch.cat(scores)
    band = data.conformal(every, COVERAGE)
    return {
        "coverage": COVERAGE,
        "calibration_pools": len(every),
        "cells": cells,
        "relative_l2": [_rounded(value) for value in band],
        "largest_mass_drift": _rounded(torch.cat(drift).abs().max()),
    }


def score_plain(name: str, model: Operator) -> dict[str, Any]:
    """Relative L2 errors on fresh samples of the other two tasks."""
    fresh = PLANS[name].make(200, 90_000)
    scores = {}
    for cells, frames in fresh.items():
        if model.signature.evolves:
            given = sk.rollout(model, frames[:, :1], frames.shape[1] - 1, batch_size=50)
            errors = [
                ((given[..., c] - frames[:, 1:, ..., c]).flatten(2).norm(dim=2)
                 / frames[:, 1:, ..., c].flatten(2).norm(dim=2)).mean()
                for c in range(frames.shape[-1])
            ]  # fmt: skip
            fields = dict(zip(PLANS[name].signature["out_fields"], map(_rounded, errors), strict=True))
            scores[str(cells)] = {"states": len(frames), "frames": frames.shape[1] - 1, **fields}
        else:
            with torch.no_grad():
                given = torch.cat([model(part) for part in frames[:, :1].split(50)])
            error = (given - frames[:, 1]).flatten(1).norm(dim=1) / frames[:, 1].flatten(1).norm(dim=1)
            band = data.conformal(error[:, None], COVERAGE)
            scores[str(cells)] = {"states": len(frames), "pressure": _rounded(error.mean()),
                                  "band_90": _rounded(band[0])}  # fmt: skip
    return scores


def certificate(model: Operator, plan: Plan, count: int = CERTIFIED) -> dict[str, Any]:
    """Lipschitz bounds of token and modulation, the worst around fresh inputs, on every fourth cell of each axis."""
    frames = plan.make(FRESH, FRESH_SEED)
    frames = frames[min(frames)]
    thin = (slice(None, None, THINNED),) * model.signature.space_dims
    inputs = frames[:: len(frames) // count][(slice(count), slice(1), *thin)]
    effort = AttackSettings(starts=4, steps=6, pairs=16)
    found = certify_radii(model, inputs.contiguous(), RADII, config=effort)
    return {
        "inputs": len(inputs),
        "cells": list(found[0].resolution),
        "radii": [
            {
                "radius": each.radius,
                "kan": _rounded(each.kan),
                "modulation": _rounded(each.modulation),
                "modulation_attacked": _rounded(each.modulation_attacked),
                "prediction": _rounded(each.entries["prediction_change"].value),
                "prediction_attacked": _rounded(each.entries["prediction_change"].attacked or 0.0),
                "status": each.status,
            }
            for each in found
        ],
    }


def certify_again(name: str, count: int) -> None:
    """Add the certificate of the saved weights and write the card."""
    torch.set_num_threads(1)
    found = certificate(sk.from_pretrained(TARGET / name), PLANS[name], count)
    card.write_scores(TARGET / name, {**card.read_scores(TARGET / name), "certificate": found})
    card.write_card(TARGET / name)


def make(name: str, minutes: float | None) -> None:
    """Train, score and save a shipped model."""
    plan = PLANS[name]
    torch.set_num_threads(1)
    sets = data.kept(CACHE / name, lambda: plan.make(plan.samples, 0))
    model = build(name, "spectrakan")
    minutes = plan.minutes if minutes is None else minutes
    made = train(name, model, sets, minutes)
    TARGET.mkdir(exist_ok=True)
    model.save_pretrained(TARGET / name)
    card.write_scores(TARGET / name, {"training": made})
    finish(name, model, sets, made)


def score(name: str) -> None:
    """Score the saved weights again."""
    torch.set_num_threads(1)
    plan, made = PLANS[name], card.read_scores(TARGET / name)["training"]
    sets = data.kept(CACHE / name, lambda: plan.make(plan.samples, 0))
    finish(name, sk.from_pretrained(TARGET / name), sets, made)


def finish(name: str, model: Operator, sets: data.Frames, made: dict[str, Any]) -> None:
    """Score a trained model and write its scores and its card."""
    plan = PLANS[name]
    facts: dict[str, Any] = {
        "name": name, "task": plan.task, "training": {**made, "rate": RATE, "seed": 0, "samples": plan.samples},
        "parameters": sum(p.numel() for p in model.parameters()),
        **data.largest({cells: frames[:, :-1] for cells, frames in sets.items()}),
    }  # fmt: skip
    water = plan.task == "droplet2d"
    parts: dict[str, Callable[[], Any]] = {
        "scores": lambda: score_water(model) if water else score_plain(name, model),
        **({"band": lambda: band_water(model)} if water else {}),
        "certificate": lambda: certificate(model, plan),
    }
    for key, make_part in parts.items():
        facts[key] = make_part()
        print(f"{name}: {key}", flush=True)
        card.write_scores(TARGET / name, facts)
    card.write_card(TARGET / name)


def against(name: str, kind: str, minutes: float | None) -> None:
    """Train a baseline for the same time and add its scores."""
    plan = PLANS[name]
    torch.set_num_threads(1)
    sets, model = data.kept(CACHE / name, lambda: plan.make(plan.samples, 0)), build(name, kind)
    made = train(name, model, sets, plan.minutes if minutes is None else minutes)
    scores = score_water(model) if plan.task == "droplet2d" else score_plain(name, model)
    entry = {**made, "parameters": sum(p.numel() for p in model.parameters()), "scores": scores}
    card.write_baseline(TARGET / name, kind, entry)


def _rounded(value: Tensor | float) -> float:
    return float(f"{float(value):.4g}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*PLANS, "cards"])
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--against", choices=["fno", "ffno"])
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--certify", type=int, metavar="INPUTS")
    asked = parser.parse_args()
    if asked.name == "cards":
        for name in PLANS:
            card.write_card(TARGET / name)
    elif asked.certify:
        certify_again(asked.name, asked.certify)
    elif asked.score:
        score(asked.name)
    elif asked.against:
        against(asked.name, asked.against, asked.minutes)
    else:
        make(asked.name, asked.minutes)


if __name__ == "__main__":
    main()
