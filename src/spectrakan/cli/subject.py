"""What a command that looks at a finished run works on: its model, and samples of its own or of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spectrakan.cli.progress import progress_bar
from spectrakan.data.load import load_dataset
from spectrakan.data.prepare import Prepared, prepare
from spectrakan.errors import ConfigError
from spectrakan.fields import Trajectories
from spectrakan.models import Operator, from_pretrained
from spectrakan.runs import RunFolder, read_record
from spectrakan.training import RunSettings, resolve
from spectrakan.training.runtime import Runtime


@dataclass
class Subject:
    """A trained model and the samples on which it is looked at."""

    folder: RunFolder
    choices: RunSettings
    model: Operator
    trajectories: Trajectories
    samples: Sequence[int]
    name: str
    """`test`, or the name of the file."""
    from_file: bool
    """Whether the samples are those of a file that was named, rather than the run's own."""
    _prepared: Prepared | None = field(default=None, repr=False)

    @property
    def trained_at(self) -> int:
        """Cells along the longest axis in training."""
        if self.folder.finished:
            return max(int(size) for size in read_record(self.folder.record)["resolution"])
        return self.choices.data.resolution or max(self.trajectories.grid.shape)

    def ahead(self, horizon: int | None) -> int | None:
        """Frames to predict: as asked, else as the run's own samples were scored."""
        return horizon or (None if self.from_file else self.choices.data.horizon)

    def prepared(self) -> Prepared:
        """The run's own samples with their split."""
        if self._prepared is None:
            with progress_bar(f"solving {self.choices.task}") as progress:
                self._prepared = prepare(self.choices.task, self.choices.data, progress)
        return self._prepared


def load_subject(folder: RunFolder, data: Path | None, runtime: Runtime) -> Subject:
    """The best weights of a run, and the samples of a file or else the run's own test samples."""
    choices = resolve(folder.read_config())
    model = from_pretrained(folder.best).to(runtime.device)
    if data is not None:
        found = load_dataset(data)
        if found.task not in {"", choices.task}:
            raise ConfigError(f"'{data}' holds {found.task}, the run was trained on {choices.task}")
        return Subject(folder, choices, model, found, range(found.num_samples), data.stem, from_file=True)
    with progress_bar(f"solving {choices.task}") as progress:
        prepared = prepare(choices.task, choices.data, progress if runtime.writes else None)
    samples = prepared.split.part("test")
    if not samples:
        raise ConfigError("the run has no test samples; give --data")
    return Subject(
        folder, choices, model, prepared.trajectories, samples, "test", from_file=False, _prepared=prepared
    )
