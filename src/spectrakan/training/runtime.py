"""Where a run computes: device, precision, seeds, its part among several processes, and statistics over them.

Under torchrun each process finds its number in the environment; without it there is one process and every
function here does nothing beyond returning its input.
"""

import os
import resource
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.nn.functional import all_reduce
from torch.distributed.rendezvous import rendezvous
from torch.nn.modules.batchnorm import _BatchNorm

from spectrakan.errors import ConfigError, RunError
from spectrakan.evaluation.batches import Share
from spectrakan.fields import SpaceGroup, Window
from spectrakan.processor import REMEDY, keep_freed_memory, needs_cap
from spectrakan.training.settings import RunSettings, RuntimeSettings

LOST = ("gloo", "nccl", "connection", "timeout", "timed out")
"""What torch says when a process that others wait for is gone or does not answer."""
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "cannot allocate memory", "bad_alloc")
"""What torch and the system say when memory is exhausted."""
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}


@dataclass(frozen=True)
class Runtime:
    """One process of a run."""

    device: torch.device
    dtype: torch.dtype
    mixed: bool = False
    rank: int = 0
    world_size: int = 1
    space: SpaceGroup | None = None
    """The processes with which this one shares each field."""

    @property
    def parts(self) -> int:
        """Processes that share a field."""
        return 1 if self.space is None else self.space.size

    @property
    def data_rank(self) -> int:
        """Number of the group of processes that has the same samples as this one."""
        return self.rank // self.parts

    @property
    def data_size(self) -> int:
        """Number of such groups, among which the samples are distributed."""
        return self.world_size // self.parts

    @property
    def writes(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def autocast(self) -> AbstractContextManager[object]:
        """Mixed precision where it was asked for."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16) if self.mixed else nullcontext()

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Numbers summed over all processes, in float64."""
        if self.world_size == 1:
            return list(numbers)
        kind = torch.float32 if self.device.type == "mps" else torch.float64
        total = torch.tensor(list(numbers), dtype=kind, device=self.device)
        dist.all_reduce(total)
        return [float(number) for number in total]

    def exchange(self, item: Any) -> list[Any]:
        """What each process hands in, a document or a tensor on the CPU, in their order."""
        items = [item] * self.world_size
        if self.world_size > 1:
            dist.all_gather_object(items, item)
        return items

    def move(self, window: Window) -> Window:
        """A window on this device, in this run's type of numbers; its times stay as they are."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(self.device, self.dtype, non_blocking=True)

        return replace(
            window,
            inputs=move(window.inputs),
            targets=move(window.targets),
            params=None if window.params is None else move(window.params),
        )

    @property
    def share(self) -> Share:
        """The part of a test set that this process scores."""
        return Share(self.data_rank, self.data_size, lambda document: self.exchange(document)[:: self.parts])

    def peak_memory_mb(self) -> float:
        """The most memory that was in use: of the GPU where there is one, else of this process."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / 1e6
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used / 1e6 if sys.platform == "darwin" else used * 1024 / 1e6

    def wait(self) -> None:
        """Until all processes are here."""
        if self.world_size > 1:
            dist.barrier()


def restarts() -> int:
    """How often torchrun has started this group of processes again after a failure."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


@contextmanager
def started(config: RuntimeSettings) -> Iterator[Runtime]:
    """Set up this process for a run, and leave the interpreter's global state as it was found."""
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = pick_device(config.device, int(os.environ.get("LOCAL_RANK", "0")))
    mixed = config.precision == "bfloat16"
    if mixed and device.type == "cpu":
        require_bfloat16()
    if device.type == "cpu":
        keep_freed_memory()
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    if config.threads:
        torch.set_num_threads(config.threads)
    if config.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    devices = [device] if device.type == "cuda" else []
    joined = world > 1 and not dist.is_initialized()
    if joined:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        # Each restart meets under keys of its own, because torchrun's store keeps the old ones.
        store, rank, world = next(iter(rendezvous("env://")))
        kept = dist.PrefixStore(f"start_{restarts()}", store)  # type: ignore[attr-defined]
        backend, limit = "nccl" if device.type == "cuda" else "gloo", timedelta(seconds=config.process_timeout)
        dist.init_process_group(backend, store=kept, rank=rank, world_size=world, timeout=limit)
    try:
        with torch.random.fork_rng(devices=devices), warnings.catch_warnings():
            # Of weights with an axis of length 1; it says of itself that nothing is wrong.
            warnings.filterwarnings("ignore", message="Grad strides do not match bucket view strides")
            torch.default_generator.manual_seed(config.seed)
            if device.type == "cuda":
                torch.cuda.manual_seed(config.seed)
            space = _space_group(config.space_parallel, world, device)
            yield Runtime(device, DTYPES[config.precision], mixed, rank, world, space)
    except RuntimeError as problem:
        if world > 1 and any(sign in str(problem).lower() for sign in LOST):
            raise RunError(f"process {rank} lost another process of this run: {problem}") from None
        raise
    finally:
        if joined:
            dist.destroy_process_group()
        torch.set_num_threads(threads)
        # Only where it was changed: this call loads torch's compiler, which takes seconds.
        if torch.are_deterministic_algorithms_enabled() != strict:
            torch.use_deterministic_algorithms(strict)


@contextmanager
def enough_memory(config: RunSettings) -> Iterator[None]:
    """Turn every way of running out of memory into one `RunError` that names batch size and resolution."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError, RuntimeError, OSError) as problem:
        known = isinstance(problem, MemoryError | torch.OutOfMemoryError)
        if not known and not any(sign in str(problem).lower() for sign in NO_MEMORY):
            raise
        where = config.data.resolution or "the task's own"
        raise RunError(
            f"not enough memory for training.batch_size={config.training.batch_size} at data.resolution={where} "
            f"with {config.training.horizon} unrolled frames; lower one of them, or set "
            "training.checkpoint_activations=true"
        ) from None


def _space_group(parts: int, world: int, device: torch.device) -> SpaceGroup | None:
    """The processes that share a field with this one: neighbours in a mesh of (samples, space)."""
    parts = min(parts, world)
    if parts == 1:
        return None
    if world % parts:
        raise ConfigError(
            f"runtime.space_parallel={parts} does not divide the {world} processes; start a multiple of it"
        )
    mesh = init_device_mesh(device.type, (world // parts, parts), mesh_dim_names=("samples", "space"))
    return SpaceGroup(mesh.get_group("space"), str(device))


def pick_device(name: str, local_rank: int = 0) -> torch.device:
    """The device of that name, or for `auto` the best there is."""
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    chosen = next(kind for kind, there in present.items() if there) if name == "auto" else name
    if not present[chosen]:
        have = ", ".join(kind for kind, there in present.items() if there)
        raise ConfigError(f"runtime.device={chosen} is not available here; available: {have}")
    if chosen == "cuda":
        return torch.device("cuda", local_rank % max(1, torch.cuda.device_count()))
    return torch.device(chosen)


def require_bfloat16() -> None:
    """Refuse bfloat16 on a processor where its first matrix product would end the process."""
    if needs_cap():
        raise ConfigError(
            "runtime.precision=bfloat16 would end this process: the processor announces AMX instructions and cannot "
            f"execute them; {REMEDY}, or use runtime.precision=float32"
        )


def require_compiler(device: torch.device) -> None:
    """Refuse torch.compile on a CPU without the C++ compiler that it needs, before it fails with a page of text."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    if device.type == "cpu" and not any(name and shutil.which(name) for name in names):
        raise ConfigError(
            "runtime.compile=true needs a C++ compiler on a CPU, found none of c++, g++, clang++ and no CXX; "
            "install one, or set it to false"
        )


def random_states(runtime: Runtime) -> dict[str, Tensor]:
    """The generators' states of all processes, by process."""
    states = {f"cpu.{rank}": state for rank, state in enumerate(runtime.exchange(torch.get_rng_state()))}
    if runtime.device.type == "cuda":
        mine = torch.cuda.get_rng_state(runtime.device)
        states |= {f"cuda.{rank}": state for rank, state in enumerate(runtime.exchange(mine))}
    return states


def restore_random(states: dict[str, Tensor], runtime: Runtime) -> None:
    """Put this process's generators back; a process that the saved run did not have keeps its own."""
    if (state := states.get(f"cpu.{runtime.rank}")) is not None:
        torch.set_rng_state(state)
    if runtime.device.type == "cuda" and (state := states.get(f"cuda.{runtime.rank}")) is not None:
        torch.cuda.set_rng_state(state, runtime.device)


class SyncedBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes, so that two of them equal one with the doubled batch.

    With n cells and samples on all processes together: mu = (1/n) sum x, var = (1/n) sum x² - mu²; both sums are
    exchanged forth and, for the gradient, back. Torch's own SyncBatchNorm does this on GPUs only.
    """

    def forward(self, x: Tensor) -> Tensor:
        """`(batch, channel, *space)` to the same; outside training as any batch normalisation."""
        if not self.training:
            return super().forward(x)
        axes = [axis for axis in range(x.ndim) if axis != 1]
        count = torch.full((1,), float(x.numel() // x.shape[1]), dtype=x.dtype, device=x.device)
        local = torch.cat([x.sum(axes), x.square().sum(axes), count])
        sums = all_reduce(local)
        total, squares, number = sums.split([x.shape[1], x.shape[1], 1])
        mean = total / number
        variance = squares / number - mean.square()
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            share = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.running_mean.lerp_(mean.detach(), share)
            self.running_var.lerp_((variance * (number / (number - 1))).detach(), share)
        shape = [1, -1, *[1] * (x.ndim - 2)]
        scaled: Tensor = (x - mean.view(shape)) * (variance + self.eps).rsqrt().view(shape)
        return scaled if self.weight is None else scaled * self.weight.view(shape) + self.bias.view(shape)

    def _check_input_dim(self, input: Tensor) -> None:  # noqa: A002 - torch's name
        """Whatever `forward` takes."""


def synchronise_norms(module: nn.Module) -> None:
    """Make all batch normalisations of a module synced ones, with the weights that they have."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
            # They differ in `forward` alone.
            layer.__class__ = SyncedBatchNorm  # type: ignore[assignment]
