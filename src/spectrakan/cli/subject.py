"""What a command that looks at a finished run works on: its model, and samples of its own or of a file."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from spectrakan.config import build_settings, read_yaml
from spectrakan.data.check import require_finite
from spectrakan.data.prepare import Prepared, find, prepare
from spectrakan.data.problems import find_problem
from spectrakan.errors import ConfigError, DataFormatError
from spectrakan.evaluation.batches import first_windows
from spectrakan.fields import SpaceGroup, Trajectories, Window
from spectrakan.fields.grid_part import whole_of
from spectrakan.models import Operator, from_pretrained
from spectrakan.runs import RunFolder, data_digest, read_record
from spectrakan.training import RunSettings, resolve
from spectrakan.training.display import progress_bar
from spectrakan.training.resolve import Resolved
from spectrakan.training.runtime import Runtime, started
from spectrakan.training.settings import RuntimeSettings


@dataclass
class Subject:
    """A trained model and the samples on which it is looked at."""

    folder: RunFolder
    config: RunSettings
    model: Operator
    trajectories: Trajectories
    samples: Sequence[int]
    name: str
    """`test`, or the name of the file."""
    from_file: bool
    """Whether the samples are those of a file that was named, rather than the run's own."""
    warning: str = ""
    """What a reader of the scores must know about the samples."""
    _prepared: Prepared | None = None

    @property
    def resolved(self) -> Resolved:
        """The run with its problem, for which its own data must be there."""
        return resolve(self.folder.read_config())

    @property
    def trained_at(self) -> int:
        """Cells along the longest axis in training."""
        if self.folder.finished:
            return max(int(size) for size in read_record(self.folder.record)["resolution"])
        return self.config.data.resolution or max(whole_of(self.trajectories.grid).shape)

    def ahead(self, horizon: int | None) -> int | None:
        """Frames to predict: as asked, else as the run's own samples were scored."""
        return horizon or (None if self.from_file else self.config.data.horizon)

    def first_window(self, count: int) -> Window:
        """The first window of each of the first samples."""
        windows = first_windows(self.model, self.trajectories, self.samples[:count], 1)
        return windows.gather(range(len(windows)))

    def prepared(self) -> Prepared:
        """The run's own samples with their split."""
        if self._prepared is None:
            self._prepared = prepared_run(self.resolved)
        return self._prepared


def start_process(device: str, space_parallel: int) -> AbstractContextManager[Runtime]:
    """Take part in scoring or predicting by several processes, each field cut among `space_parallel` of them."""
    asked = {"device": device, "space_parallel": space_parallel}
    return started(build_settings(RuntimeSettings, asked, where="runtime"))


def prepared_run(resolved: Resolved, resolution: int | None = None, space: SpaceGroup | None = None) -> Prepared:
    """The samples of a run with their split, at another resolution if asked for, or their part of this process."""
    config = resolved.config.data
    config = config if resolution is None else replace(config, resolution=resolution)
    with progress_bar(f"solving {resolved.config.task}") as progress:
        return prepare(resolved.problem, config, progress, space=space)


def load_subject(
    folder: RunFolder,
    data: Path | None,
    *,
    mapping: Path | None = None,
    resolution: int | None = None,
    device: torch.device | str = "cpu",
    space: SpaceGroup | None = None,
    solved: dict[str, Prepared] | None = None,
) -> Subject:
    """The best weights of a run, and the samples of a file or else the run's own test samples.

    Runs of equal data that share `solved` have them solved once.
    """
    config = stored_settings(folder)
    if data is not None:
        if resolution is not None:
            raise ConfigError("--resolution solves the run's own samples anew; it cannot go with --data")
        model = from_pretrained(folder.trained()).to(device)
        found = run_data(config, data, mapping)
        require_finite(found, str(data))
        found = found if space is None else found.cut(space)
        note = _training_samples(folder, found)
        return Subject(folder, config, model, found, range(found.num_samples), data.stem, True, note)
    resolved = resolve(folder.read_config())
    model = from_pretrained(folder.trained()).to(device)
    solved, key = {} if solved is None else solved, repr((config.task, config.data))
    prepared = solved[key] = solved.get(key) or prepared_run(resolved, resolution, space)
    part = prepared.parts["test"]
    if not part.samples:
        raise ConfigError("the run has no test samples; give --data")
    return Subject(folder, config, model, part.trajectories, part.samples, "test", False, _prepared=prepared)


def stored_settings(folder: RunFolder) -> RunSettings:
    """The settings of a run as they are stored; its own data need not be there."""
    return build_settings(RunSettings, folder.read_config())


def run_data(config: RunSettings, path: Path, mapping: Path | None = None) -> Trajectories:
    """A file read as the run's own data are (mapping, fields, boundary, frames left out, parameters hidden).

    A file that lacks the arrays of the run's mapping is read by its own layout.
    """
    own = config.data if mapping is None else replace(config.data, mapping=read_yaml(mapping))
    kept = replace(own, path=str(path.absolute()), num_samples=None, frames=None, resolution=None)
    known = find_problem(config.task)
    try:
        return find(known, kept)
    except DataFormatError:
        if own.mapping is not None and mapping is None:
            with suppress(DataFormatError):
                return find(known, replace(kept, mapping=None))
        raise


def _training_samples(folder: RunFolder, data: Trajectories) -> str:
    """A warning where the file holds the samples that the run was trained on."""
    if not folder.finished:
        return ""
    provenance = read_record(folder.record)["provenance"]
    if provenance.get("data_sha256") != data_digest(data):
        return ""
    count = len(provenance["split"]["train"])
    return f"these are the run's own data: {count} of {data.num_samples} samples were trained on"
