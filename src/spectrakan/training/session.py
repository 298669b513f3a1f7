"""Everything that changes while a run trains, in one place, so that it can be saved and put back whole.

How weights move is here too: the optimizer, its learning rate over the steps, and the moving average of weights; and
what stops a run: SIGTERM, SIGINT (Ctrl-C) and SIGHUP end it after the running step, or at once where nothing is lost.
"""

import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from types import FrameType

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from spectrakan.checkpoint import Checkpoint
from spectrakan.data.loader import Loader
from spectrakan.errors import ConfigError, DataFormatError, RunError
from spectrakan.models.operator import Operator, describe_model
from spectrakan.theory.control import cap_slopes
from spectrakan.theory.parts import token_kan
from spectrakan.training.objective import Objective
from spectrakan.training.runtime import Runtime, random_states, require_compiler, restore_random
from spectrakan.training.settings import RunSettings

RECOVERY_RATE = 0.5
"""What the learning rate is multiplied by at each recovery."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that end a run."""


def rate_factor(step: int, total: int, *, warmup: float = 0.1) -> float:
    """What the peak rate is multiplied by at `step` of `total`: a pure function, so there is nothing to save.

    One cycle: cosine from 1/25 up to 1 over the share `warmup`, then cosine down to 1e-4 (Smith 2018).

    >>> [round(rate_factor(step, 101, warmup=0.3), 3) for step in (0, 30, 100)]
    [0.04, 1.0, 0.0]
    """
    peak = warmup * max(total - 1, 1)
    if step < peak:
        return _between(1 / 25, 1.0, step / peak)
    return _between(1.0, 1e-4, min((step - peak) / max(total - 1 - peak, 1), 1.0))


def _between(start: float, end: float, share: float) -> float:
    """Half a cosine wave from `start` to `end`."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


class WeightAverage:
    """The exponential moving average a_n = d_n a_{n-1} + (1 - d_n) w_n, d_n = min(d, (1 + n) / (10 + n)).

    A decay of 0 keeps none, and `applied` changes nothing. The decay starts low, so that the first, random weights
    are soon forgotten. `constrain` brings the model back to where its weights have to be: a mean of such weights
    need not be there.
    """

    def __init__(self, model: nn.Module, decay: float, constrain: Callable[[], None] = lambda: None) -> None:
        self.model, self.constrain = model, constrain
        self.decay = decay
        self.weights: dict[str, Tensor] = {}
        if decay > 0:
            self.weights = {name: tensor.detach().clone() for name, tensor in model.named_parameters()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after step number `step`, counted from 1."""
        if not self.weights:
            return
        decay = min(self.decay, (1 + step) / (10 + step))
        current = dict(self.model.named_parameters())
        torch._foreach_lerp_(list(self.weights.values()), [current[name].data for name in self.weights], 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with its averaged weights in place, for validation and for keeping."""
        if not self.weights:
            yield
            return
        current = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        try:
            self._put(self.weights)
            self.constrain()
            yield
        finally:
            self._put(current)

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from a saved average."""
        for name, tensor in self.weights.items():
            tensor.copy_(weights[name])

    @torch.no_grad()
    def _put(self, weights: Mapping[str, Tensor]) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.copy_(weights[name])


@dataclass
class Position:
    """Where training stands, beside the loader's own position, as plain numbers."""

    step: int = 0
    best: float | None = None
    best_step: int = 0
    recoveries: int = 0
    rate_factor: float = 1.0
    running_loss: float = 0.0
    epoch_loss: float = 0.0
    epoch_steps: int = 0


class Stopped(BaseException):
    """A signal ended the run; `code` is the exit code that shells expect: 128 and the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.code = 128 + number


class StopRequest:
    """Keeps a signal while `patient`, and raises `Stopped` on it otherwise, or when it comes twice."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.patient = False

    def __call__(self) -> bool:
        """Whether a stop was asked for."""
        return self.number is not None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle an ending signal."""
        again = self.number is not None
        self.number = number
        if again or not self.patient:
            raise Stopped(number)


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Take the signals for the time of a run; a run in another thread than the main one cannot."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.handle) for number in ENDING}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Session:
    """A model in training by an objective: weights, their average, optimizer, loader and position.

    `validate` gives the validation error of the model as it is, None where there is nothing to validate on.
    """

    def __init__(
        self,
        objective: Objective,
        loader: Loader,
        config: RunSettings,
        runtime: Runtime,
        data_sha256: str,
        validate: Callable[[Operator], float | None],
    ) -> None:
        self.model, self.loader, self.config, self.runtime = objective.model, loader, config, runtime
        self.data_sha256, self.validate = data_sha256, validate
        self.position = Position()
        self.total_steps = config.training.epochs * len(loader)
        self.constrain()
        self.average = WeightAverage(self.model, self.model.stages.ema_decay, self.constrain)
        self.parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        # A model without weights gets an optimizer of nothing, so that it is scored like the others. Fused is one
        # kernel for a tensor's whole update, which matters to a model of many small tensors.
        kept: list[Tensor] = [*self.parameters] or [torch.zeros(0)]
        plan = config.training
        self.optimizer = torch.optim.AdamW(kept, plan.learning_rate, weight_decay=plan.weight_decay, fused=True)
        if config.runtime.compile:
            require_compiler(runtime.device)
            objective.compile()
        self.objective: nn.Module = objective
        if runtime.world_size > 1 and self.parameters:
            devices = [runtime.device] if runtime.device.type == "cuda" else None
            self.objective = DistributedDataParallel(objective, devices)
        self.best_weights: dict[str, Tensor] = {}
        self.first_weights = self.averaged_state()
        self.run_id = ""
        self.stop = StopRequest()
        self.checkpoint_wanted: Callable[[], bool] = lambda: False
        self.stopping = False
        self.checkpoint_due = False

    def constrain(self) -> None:
        """Bring the weights back to where the settings want them; where nothing is capped, nothing happens."""
        control = self.config.training.lipschitz
        if control.cap is not None:
            cap_slopes(token_kan(self.model), control.cap, control.measure)

    def capture(self) -> Checkpoint:
        """The whole state; all processes must call it together, for each has its own random numbers."""
        return Checkpoint(
            model=describe_model(self.model),
            weights=self.model.state_dict(),
            average=self.average.weights,
            optimizer=self.optimizer.state_dict(),
            random=random_states(self.runtime),
            position={
                **asdict(self.position),
                **self.loader.state(),
                "processes": self.runtime.data_size,
                "data_sha256": self.data_sha256,
            },
        )

    def restore(self, saved: Checkpoint) -> None:
        """Stand where `saved` was taken; a state of another model is refused."""
        position, own = saved.position, describe_model(self.model)
        needed = {entry.name for entry in fields(Position)} | {"epoch", "batch", "processes"}
        if missing := sorted(needed - position.keys()):
            raise DataFormatError(f"the checkpoint does not say where training stood: missing {', '.join(missing)}")
        if differing := [key for key in {**own, **saved.model} if saved.model.get(key) != own.get(key)]:
            raise ConfigError(f"the checkpoint holds another model: its {', '.join(differing)} differ")
        self.model.load_state_dict(dict(saved.weights))
        self.average.restore(saved.average)
        self.optimizer.load_state_dict(dict(saved.optimizer))
        restore_random(dict(saved.random), self.runtime)
        self.position = Position(**{entry.name: position[entry.name] for entry in fields(Position)})
        self.loader.restore({"epoch": position["epoch"], "batch": position["batch"]})

    def go_back(self, reason: str) -> None:
        """Return to the best weights so far, else to the first ones, at a lower rate: a step would spoil the weights.

        Step and epoch return too, so that no step is lost; the optimizer's moments begin anew. A resumed run has the
        same weights to return to. After `training.max_recoveries` times `RunError` is raised.
        """
        position, training = self.position, self.config.training
        if position.recoveries >= training.max_recoveries:
            kept = "The best weights so far are kept. " if self.best_weights else ""
            raise RunError(
                f"training diverged at step {position.step} of epoch {self.loader.epoch}: {reason}. "
                f"It went back to good weights {training.max_recoveries} times, each time at half the rate, without "
                f"success. {kept}Try training.learning_rate below "
                f"{training.learning_rate * position.rate_factor:.2g}, or a shorter training.horizon"
            )
        self.model.load_state_dict(self.best_weights or self.first_weights)
        self.average = WeightAverage(self.model, self.model.stages.ema_decay, self.constrain)
        self.optimizer.state.clear()
        self.loader.restore({"epoch": position.best_step // len(self.loader), "batch": 0})
        position.recoveries, position.rate_factor = position.recoveries + 1, position.rate_factor * RECOVERY_RATE
        position.step, position.epoch_loss, position.epoch_steps = position.best_step, 0.0, 0

    def averaged_state(self) -> dict[str, Tensor]:
        """The weights that are validated and kept, as copies."""
        with self.average.applied():
            return {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
