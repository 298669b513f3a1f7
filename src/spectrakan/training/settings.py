"""All settings of a run."""

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import Field

from spectrakan.config import Count, as_mapping, settings, to_yaml_with_help
from spectrakan.data.prepare import DataSettings
from spectrakan.errors import ConfigError
from spectrakan.models.catalog import meanings_of
from spectrakan.theory.control import LipschitzSettings

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NotNegative = Annotated[float, Field(ge=0.0)]
LossName = Literal["mse", "relative_l2"]


@settings
class TrainingSettings:
    """How weights are fitted."""

    epochs: Count = 50
    """Passes over the training windows."""
    batch_size: Count = 16
    """Windows that each process takes in a step."""
    learning_rate: Positive = 2e-3
    """The largest rate: one cycle of the rate rises to it and falls to nothing."""
    loss: LossName = "relative_l2"
    """`mse` or `relative_l2`, at unit scale."""
    mode: Literal["one_step", "autoregressive", "pushforward"] = "one_step"
    """What is unrolled and what is differentiated."""
    horizon: Count = 1
    """Frames that are unrolled in training; 1 in mode one_step."""
    gradient_steps: Count = 1
    """Last frames of a pushforward that are compared and differentiated."""
    curriculum: Share = 0.0
    """Share of the training over which the horizon grows from 1 to its full length."""
    noise: NotNegative = 0.0
    """Standard deviation of Gaussian noise on the inputs, in units of the fields' spread."""
    weight_decay: NotNegative = 1e-4
    """Strength of the decay of weights."""
    warmup: Share = 0.1
    """Share of the steps in which the rate rises."""
    clip_norm: NotNegative = 1.0
    """Largest norm of the gradient; 0 does not clip."""
    checkpoint_activations: bool = False
    """Whether activations of unrolled steps are computed again instead of kept, to save memory."""
    validate_epochs: Count = 1
    """Epochs from one validation to the next; the last epoch is always validated."""
    max_recoveries: Annotated[int, Field(ge=0)] = 3
    """How often training goes back to its best weights at half the rate before it gives up."""
    divergence_factor: Annotated[float, Field(gt=1.0)] = 1000.0
    """A loss this many times its running mean counts as diverged."""
    init_from: str | None = None
    """Folder of a run or a model whose weights and units training starts from (fine-tuning)."""
    lipschitz: LipschitzSettings = field(default_factory=LipschitzSettings)
    """How steep the token's KAN may become."""

    def __post_init__(self) -> None:
        if self.mode == "one_step" and self.horizon != 1:
            raise ConfigError(f"training.mode=one_step unrolls 1 frame, got training.horizon={self.horizon}")


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
    keep_checkpoints: Count = 2
    """Last checkpoints that are kept; a damaged one is passed over for the one before it."""
    space_parallel: Count = 1
    """Processes that share each field, cut along its first axis; with fewer processes, all of them. The others share
    the samples."""
    process_timeout: Positive = 1800.0
    """Seconds after which a process that others wait for counts as lost."""
    log_steps: Count = 10
    """Steps from one line of the log to the next; epochs are always logged."""
    track: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = ()
    """Services that get the curves beside the JSON lines (extras `track`, `wandb`, `mlflow`); none by default."""


@settings
class RunSettings:
    """The whole config of a run; `model` has `name`, `variant`, and the settings of that model and its stages."""

    task: str
    """Name of the problem; `spectrakan tasks` lists those that are known without a file."""
    budget: str = "short"
    """Preset that the settings started from: smoke, short, long or paper."""
    data: DataSettings = field(default_factory=DataSettings)
    model: dict[str, Any] = field(default_factory=dict)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)


def explained(config: RunSettings) -> str:
    """All settings of a run as YAML, each with its meaning in a comment above it; `train` reads it again."""
    own = {"name": "Name of the model.", "variant": "Named set of the model's settings that these started from."}
    return to_yaml_with_help(RunSettings, as_mapping(config), {"model": own | meanings_of(config.model["name"])})
