"""Everything that changes while a run trains, in one place, so that it can be saved and put back whole."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from spectrakan.checkpoint import Checkpoint, describe_model
from spectrakan.data.loader import Loader
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.models.operator import Operator
from spectrakan.theory.control import cap_slopes
from spectrakan.theory.parts import token_kan
from spectrakan.training.average import WeightAverage
from spectrakan.training.runtime import Runtime, random_states, require_compiler, restore_random
from spectrakan.training.schedule import rate_factor
from spectrakan.training.settings import RunSettings
from spectrakan.training.unroll import Objective


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


class Session:
    """A model in training by an objective: weights, their average, optimizer, loader and position.

    `validate` gives the validation error of the model as it is, None where there is nothing to validate on.
    """

    def __init__(
        self,
        objective: Objective,
        loader: Loader,
        choices: RunSettings,
        runtime: Runtime,
        data_sha256: str,
        validate: Callable[[Operator], float | None],
    ) -> None:
        self.model, self.loader, self.choices, self.runtime = objective.model, loader, choices, runtime
        self.data_sha256, self.validate = data_sha256, validate
        self.position = Position()
        self.constrain()
        self.average = WeightAverage(self.model, choices.training.average, self.constrain)
        self.parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = _optimizer(self.parameters, choices)
        self.objective = _wrapped(objective, choices, runtime)
        self.best_weights: dict[str, Tensor] = {}
        self.good: Checkpoint | None = None
        self.stop_requested: Callable[[], bool] = lambda: False
        self.checkpoint_wanted: Callable[[], bool] = lambda: False
        self.stopping = False
        self.checkpoint_due = False

    @property
    def total_steps(self) -> int:
        """Steps of the whole training."""
        return self.choices.training.epochs * len(self.loader)

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        training = self.choices.training
        shape = rate_factor(
            training.schedule,
            self.position.step,
            self.total_steps,
            warmup=training.warmup,
            halve_every=training.halve_epochs * len(self.loader),
        )
        return training.learning_rate * shape * self.position.rate_factor

    def constrain(self) -> None:
        """Bring the weights back to where the settings want them; where nothing is capped, nothing happens."""
        control = self.choices.training.lipschitz
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
                "processes": self.runtime.world_size,
                "data_sha256": self.data_sha256,
            },
            good=self._earlier(),
        )

    def _earlier(self) -> Checkpoint | None:
        """The good state, unless the present one stands at the same step."""
        if self.good is None or self.good.position["step"] == self.position.step:
            return None
        return self.good

    def restore(self, saved: Checkpoint) -> None:
        """Stand where `saved` was taken; a state of other data or of another model is refused."""
        self._check(saved)
        self.model.load_state_dict(dict(saved.weights))
        self.average.restore(saved.average)
        # Torch takes the tensors over as they are, so a state that is kept must be handed in as a copy.
        self.optimizer.load_state_dict(copy.deepcopy(dict(saved.optimizer)))
        restore_random(dict(saved.random), self.runtime)
        self.good = saved.good
        facts = saved.position
        self.position = Position(**{entry.name: facts[entry.name] for entry in fields(Position)})
        self.loader.restore({"epoch": facts["epoch"], "batch": facts["batch"]})

    def averaged_state(self) -> dict[str, Tensor]:
        """The weights that are validated and kept, as copies."""
        with self.average.applied():
            return {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def _check(self, saved: Checkpoint) -> None:
        facts: Mapping[str, Any] = saved.position
        needed = {entry.name for entry in fields(Position)} | {"epoch", "batch", "processes", "data_sha256"}
        if missing := sorted(needed - facts.keys()):
            raise DataFormatError(f"the checkpoint does not say where training stood: missing {', '.join(missing)}")
        if facts["data_sha256"] != self.data_sha256:
            raise ConfigError(
                f"the checkpoint was trained on data with SHA-256 {facts['data_sha256'][:12]}, "
                f"the data now have {self.data_sha256[:12]}; resume with the same data"
            )
        if saved.model != describe_model(self.model):
            differing = [key for key, value in describe_model(self.model).items() if saved.model.get(key) != value]
            raise ConfigError(f"the checkpoint holds another model: its {', '.join(differing)} differ")
        if facts["processes"] != self.runtime.world_size:
            raise ConfigError(
                f"the checkpoint was trained by {facts['processes']} processes, this run has "
                f"{self.runtime.world_size}; resume with {facts['processes']}, for batches are shared out among them"
            )


def _optimizer(parameters: list[nn.Parameter], choices: RunSettings) -> torch.optim.Optimizer:
    training = choices.training
    # A model without weights to learn still has a session, so that it can be scored like the others.
    kept: list[Tensor] = [*parameters] or [torch.zeros(0)]
    kind = torch.optim.AdamW if training.optimizer == "adamw" else torch.optim.Adam
    # One kernel for a tensor's whole update, which matters to a model of many small tensors.
    return kind(kept, lr=training.learning_rate, weight_decay=training.weight_decay, fused=True)


def _wrapped(objective: Objective, choices: RunSettings, runtime: Runtime) -> nn.Module:
    wrapped: nn.Module = objective
    if choices.runtime.compile:
        require_compiler(runtime.device)
        objective.compile()
    if runtime.world_size > 1 and any(parameter.requires_grad for parameter in objective.parameters()):
        devices = [runtime.device] if runtime.device.type == "cuda" else None
        wrapped = DistributedDataParallel(wrapped, device_ids=devices)
    return wrapped
