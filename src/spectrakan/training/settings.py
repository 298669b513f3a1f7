"""All choices of a run, from defaults, recipe, file and command line, in that order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from spectrakan.config import apply_overrides, as_mapping, build_settings, read_yaml, settings
from spectrakan.data.catalog import TASKS, Task, task
from spectrakan.data.prepare import DataSettings
from spectrakan.data.windows import Starts
from spectrakan.errors import ConfigError, nearest
from spectrakan.models.catalog import MODELS, VARIANTS, variant_choices
from spectrakan.theory.control import LipschitzSettings
from spectrakan.training.loss import LossName
from spectrakan.training.recipes import RecipeName, recipe
from spectrakan.training.schedule import ScheduleName

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]
ErrorName = Literal["relative_l2", "mse"]


@settings
class TrainingSettings:
    """How weights are fitted."""

    recipe: RecipeName = "ours"
    """Where defaults come from: `ours`, or `pdebench` for the published protocol of that benchmark."""
    epochs: Count = 50
    """Passes over the training windows."""
    batch_size: Count = 16
    """Windows that each process takes in a step."""
    learning_rate: Positive = 2e-3
    """The largest rate of the schedule."""
    loss: LossName = "relative_l2"
    """`mse`, `relative_l2` or `h1`, at unit scale."""
    physics_weight: NotNegative = 0.0
    """Weight of the equation's residual of the predicted frames, added to the loss; 0 leaves it out."""
    mode: Literal["one_step", "autoregressive", "pushforward"] = "one_step"
    """What is unrolled and what is differentiated."""
    horizon: Count = 1
    """Frames that are unrolled in training; 1 in mode one_step."""
    gradient_steps: Count = 1
    """Last frames of a pushforward that are compared and differentiated."""
    starts: Starts = "all"
    """Whether windows start at every frame where they fit, or only at the first one of each trajectory."""
    curriculum: Share = 0.0
    """Share of the training over which the horizon grows from 1 to its full length."""
    noise: NotNegative = 0.0
    """Standard deviation of Gaussian noise on the inputs, in units of the fields' spread."""
    step_reduction: Literal["mean", "sum"] = "mean"
    """Whether the loss is a mean or a sum over unrolled frames."""
    optimizer: Literal["adamw", "adam"] = "adamw"
    """`adamw` decays weights beside the gradient, `adam` within it."""
    weight_decay: NotNegative = 1e-4
    """Strength of the decay of weights."""
    schedule: ScheduleName = "one_cycle"
    """Shape of the learning rate over the steps."""
    warmup: Share = 0.1
    """Share of the steps in which the rate rises."""
    halve_epochs: Count = 100
    """Epochs after which the `step` schedule halves the rate."""
    clip_norm: NotNegative = 1.0
    """Largest norm of the gradient; 0 does not clip."""
    average: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Decay of the moving average of the weights, which is then what is validated and kept; 0 keeps none."""
    accumulate: Count = 1
    """Pieces in which a batch goes through the model, one after the other, to save memory."""
    checkpoint_activations: bool = False
    """Whether activations of unrolled steps are computed again instead of kept, to save memory."""
    normalize: bool = True
    """Whether fields are brought to unit scale by the mean and spread of the training part."""
    validate_epochs: Count = 1
    """Epochs from one validation to the next; the last epoch is always validated."""
    validation: ErrorName = "relative_l2"
    """Error of rollouts, in physical units, by which the best weights are chosen."""
    validation_frames: Count | None = None
    """Frames of those rollouts; unset: all that are predicted and scored."""
    max_recoveries: Annotated[int, Field(ge=0)] = 3
    """How often training goes back to its last good state at half the rate before it gives up."""
    explosion: Annotated[float, Field(gt=1.0)] = 1000.0
    """A loss this many times its running mean counts as exploded."""
    lipschitz: LipschitzSettings = field(default_factory=LipschitzSettings)
    """How steep the token's KAN may become."""

    def __post_init__(self) -> None:
        if self.mode == "one_step" and self.horizon != 1:
            raise ConfigError(f"training.mode=one_step unrolls 1 frame, got training.horizon={self.horizon}")
        if self.accumulate > self.batch_size:
            raise ConfigError(
                f"training.accumulate={self.accumulate} cuts a batch of {self.batch_size} into too many pieces"
            )


@settings
class RuntimeSettings:
    """Where and how reproducibly a run computes."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """`auto` takes a GPU if there is one."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of initial weights, order of batches and noise."""
    deterministic: bool = False
    """Whether only algorithms are used that give the same bits every time (they are on CPU anyway)."""
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    """Type of numbers; `bfloat16` is mixed precision, with weights in float32 (few CPUs gain by it)."""
    compile: bool = False
    """Whether the step is compiled by torch.compile."""
    threads: Annotated[int, Field(ge=0)] = 0
    """CPU threads; 0 leaves them as they are."""
    checkpoint_steps: Annotated[int, Field(ge=0)] = 0
    """Steps from one checkpoint to the next; 0 goes by time."""
    checkpoint_seconds: NotNegative = 60.0
    """Without `checkpoint_steps`: least time between checkpoints, which are then taken after steps."""
    log_steps: Count = 10
    """Steps from one line of the log to the next; epochs are always logged."""
    tensorboard: bool = False
    """Whether a TensorBoard log is written beside the JSON lines (needs the extra `track`)."""


@settings
class RunSettings:
    """The whole config of a run; `model` has `name`, `variant` and the fields of that model."""

    task: str
    """Name of the task; `spectrakan tasks` lists them."""
    data: DataSettings = field(default_factory=DataSettings)
    model: dict[str, Any] = field(default_factory=dict)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)

    def __post_init__(self) -> None:
        known = task(self.task).equation
        if self.training.physics_weight and (known is None or known.residual is None):
            raise ConfigError(
                f"training.physics_weight={self.training.physics_weight:g} needs an equation whose residual is "
                f"known, '{self.task}' has none; set it to 0"
            )


def resolve(source: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> RunSettings:
    """The settings of a run from a task's name, a YAML file or a mapping, changed by `key=value` texts.

    Whatever is not given comes from the task's recipe. Feeding `as_mapping` of the result back gives it again.

    >>> chosen = resolve("darcy2d", ["training.epochs=3", "model.width=16"])
    >>> chosen.training.epochs, chosen.model["name"], chosen.model["width"], chosen.model["num_layers"]
    (3, 'spectrakan', 16, 4)
    """
    given = apply_overrides(_mapping(source), overrides)
    name = given.get("task")
    if not isinstance(name, str):
        raise ConfigError(f"key 'task' is missing or no text; known: {', '.join(TASKS)}")
    task(name)
    kind = _group(given, "training").get("recipe", "ours")
    model_given = _group(given, "model")
    defaults = recipe(kind, name, model_given.get("name", "spectrakan"))
    merged = _merge({key: value for key, value in defaults.items() if key != "model"}, given)
    merged["model"] = _model(model_given, defaults.get("model", {}), task(name))
    chosen = build_settings(RunSettings, merged)
    _check_control(chosen)
    return chosen


def _check_control(chosen: RunSettings) -> None:
    if chosen.training.lipschitz.active and chosen.model.get("token") != "kan":
        raise ConfigError(
            "training.lipschitz controls a KAN token (model.name=spectrakan, model.token=kan), "
            f"got model.name={chosen.model['name']} with token {chosen.model.get('token', 'none')}; "
            "leave it out or choose such a model"
        )


def _mapping(source: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(source)
    text = str(source)
    if text.endswith((".yaml", ".yml")):
        return read_yaml(Path(text))
    if text not in TASKS:
        raise ConfigError(f"unknown task '{text}'{nearest(text, TASKS)} (a config file ends in .yaml)")
    return {"task": text}


def _group(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    group = mapping.get(key, {})
    if not isinstance(group, Mapping):
        raise ConfigError(f"'{key}' must be a group of settings, got {group!r}")
    return dict(group)


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings, those of `over` winning."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = _merge(below, value)
        result[key] = value
    return result


def _model(given: dict[str, Any], defaults: Mapping[str, Any], learnt: Task) -> dict[str, Any]:
    """Every choice of the model, by name; those of a recipe apply where the model knows them."""
    name, variant = given.pop("name", "spectrakan"), given.pop("variant", "default")
    if name not in MODELS:
        raise ConfigError(f"model.name: unknown model '{name}'{nearest(str(name), MODELS)}")
    variants = VARIANTS.get(name, {"default": {}})
    if variant not in variants:
        raise ConfigError(f"model.variant: '{name}' has no variant '{variant}'{nearest(str(variant), variants)}")
    config_class = MODELS[name][1]
    known = config_class.__pydantic_fields__
    fitting = {key: value for key, value in defaults.items() if key in known}
    own = variant_choices(name, variant, space_dims=len(learnt.resolution), evolves=not learnt.steady)
    over, under = (own, fitting) if variant != "default" else (fitting, own)
    config = build_settings(config_class, {**under, **over, **given}, where="model")
    return {"name": name, "variant": variant, **as_mapping(config)}
