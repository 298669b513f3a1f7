"""The folder of a run: paths of its parts, its state, its lock, and what binds the parts together."""

import fcntl
import hashlib
import json
import os
import platform
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spectrakan.config import read_yaml, to_yaml
from spectrakan.errors import ConfigError, RunError
from spectrakan.storage import read_json, write_text_atomically

FORMAT = "spectrakan-run"
VERSION = 1
DATA_PATHS = ("path", "test_path")
"""Settings of `data` that name files."""
HEAD = ("format", "version", "run_id")
"""What a manifest has beside the settings and the identity of the data."""


class RunFolder:
    """Paths of a run and what may be done to it; a folder that has a record is finished, because it comes last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        """The resolved settings, which can be fed back to `train`."""
        self.log = path / "log.jsonl"
        """One JSON object a line."""
        self.last = path / "checkpoints" / "last"
        """The whole training state, from which a run is resumed."""
        self.best = path / "checkpoints" / "best"
        """The model with the smallest validation error so far; `from_pretrained` reads it."""
        self.record = path / "record.json"
        """Scores, settings and provenance of the finished run."""
        self.manifest = path / "manifest.json"
        """What binds the parts together."""
        self.lock = path / ".lock"
        """Held while a process works here."""

    @property
    def started(self) -> bool:
        """Whether a run was started here."""
        return self.config.is_file()

    @property
    def finished(self) -> bool:
        """Whether a run was finished here."""
        return self.record.is_file()

    @property
    def resuming(self) -> str:
        """The command that continues the run."""
        return f"spectrakan train --resume {shlex.quote(str(self.path))}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder and lock it; one that was made for a run that never began is removed again."""
        made = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise RunError(f"cannot make the run folder '{self.path}': {problem.strerror}") from None
        with locked(self.lock):
            self.discard_drafts()
            try:
                yield
            finally:
                if made and not self.started:
                    self.lock.unlink(missing_ok=True)
                    for path in made:
                        if path.is_dir() and not any(path.iterdir()):
                            path.rmdir()

    def discard_drafts(self) -> None:
        """Remove half-written files and checkpoints of a killed process; only the holder of the lock may."""
        for folder in (self.path, self.last.parent, self.path / "evaluations"):
            for draft in folder.glob(".*.draft"):
                if draft.is_dir() and not draft.is_symlink():
                    shutil.rmtree(draft, ignore_errors=True)
                else:
                    draft.unlink(missing_ok=True)

    def require_present(self) -> None:
        """Refuse to go on where the folder was deleted or moved; call it before each write of a running run."""
        if not self.started:
            raise RunError(
                f"'{self.path}' was deleted or moved while the run was writing to it; put it back and go on with "
                f"`{self.resuming}`"
            )

    def require_finished(self) -> None:
        """Refuse a folder that holds no run, or one that has not ended."""
        if not self.finished:
            state = f"not finished; continue it by `{self.resuming}`"
            raise ConfigError(f"'{self.path}' is {state if self.started else 'not the folder of a run'}")

    def trained(self) -> Path:
        """The folder of the best weights; a run that has none yet is refused."""
        if self.started and not self.best.exists():
            raise ConfigError(f"'{self.path}' has no trained weights yet; continue it by `{self.resuming}`")
        return self.best

    def write_config(self, mapping: dict[str, Any]) -> None:
        """Keep the resolved settings; data in this folder are named relative to it, so that it can be moved."""
        data, here = dict(mapping.get("data") or {}), self.path.absolute()
        for key in DATA_PATHS:
            if data.get(key) and Path(data[key]).is_relative_to(here):
                data[key] = str(Path(data[key]).relative_to(here))
        write_text_atomically(self.config, to_yaml({**mapping, "data": data} if "data" in mapping else mapping))

    def read_config(self) -> dict[str, Any]:
        """The settings that the run was started with, with data of this folder where it lies now."""
        return from_folder(self._stored_config(), self.path)

    def _stored_config(self) -> dict[str, Any]:
        if not self.started:
            raise ConfigError(f"'{self.path}' is not the folder of a run: it has no config.yaml")
        return read_yaml(self.config)

    def write_manifest(self, **identity: str) -> str:
        """Bind the parts of the run together; returns the id that its checkpoints carry.

        The id is a hash of the settings but for the number of epochs, and of `identity` (such as the hash of the
        data): a run that is extended keeps its id, any other run has another id.
        """
        content = {"config": self._stored_config(), **identity}
        document = {"format": FORMAT, "version": VERSION, "run_id": _identity(content), **content}
        write_text_atomically(self.manifest, json.dumps(document, indent=2, sort_keys=True) + "\n")
        return str(document["run_id"])

    def extend(self, mapping: dict[str, Any]) -> None:
        """Put settings with more epochs in place of those that the run was started with; its record goes."""
        self.verify()
        identity = {key: value for key, value in read_json(self.manifest).items() if key not in {*HEAD, "config"}}
        self.record.unlink(missing_ok=True)
        self.write_config(mapping)
        self.write_manifest(**identity)

    def verify(self, **identity: str) -> str:
        """The id of the run, if its settings and `identity` are those it was started with; else `RunError`."""
        document = read_json(self.manifest)
        if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
            raise RunError(f"'{self.manifest}' is not the manifest of a run; start the run again in a new folder")
        content = {key: value for key, value in document.items() if key not in HEAD}
        if _identity(content) != document.get("run_id"):
            raise RunError(f"'{self.manifest}' was changed or damaged; restore it from a copy")
        if edited := changes(content["config"], self._stored_config()):
            raise RunError(
                f"'{self.config}' was changed since the run was started ({'; '.join(edited)}): undo this, or start "
                "another run with these settings"
            )
        for name, value in identity.items():
            if content.get(name) != value:
                raise RunError(
                    f"the run was started with {name} {str(content.get(name))[:12]}, now it is {value[:12]}; "
                    "go on with the same data"
                )
        return str(document["run_id"])


def from_folder(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Settings of a YAML file in `folder`, with the absolute paths of data that lie beside it."""
    data = config.get("data")
    if not isinstance(data, dict):
        return config
    beside = {key: (folder / data[key]).absolute() for key in DATA_PATHS if isinstance(data.get(key), str)}
    return {**config, "data": data | {key: str(path) for key, path in beside.items() if path.exists()}}


def _identity(content: Mapping[str, Any]) -> str:
    config = content.get("config")
    training = config.get("training") if isinstance(config, dict) else None
    if isinstance(config, dict) and isinstance(training, dict):
        lasting = {key: value for key, value in training.items() if key != "epochs"}
        content = {**content, "config": {**config, "training": lasting}}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def changes(before: Any, now: Any, key: str = "") -> list[str]:
    """Each setting that differs, as `a.b: 1 -> 2`."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return [] if before == now else [f"{key}: {before} -> {now}"]
    return [
        change
        for name in {**before, **now}
        for change in changes(before.get(name), now.get(name), f"{key}.{name}" if key else str(name))
    ]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a folder; a second process gets a `RunError` that names the holder.

    The lock is the operating system's (flock): it ends with its process, so a run that was killed leaves nothing to
    clean up, and two processes never hold it at the same time.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise RunError(
            f"'{path.parent}' is in use by {_holder(path)}; wait for it, or choose another folder"
        ) from None
    try:
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps({"pid": os.getpid(), "host": platform.node()}).encode())
        yield
    finally:
        # The file stays: removing it would let a third process lock a new file of the same name.
        os.ftruncate(handle, 0)
        os.close(handle)


def _holder(path: Path) -> str:
    try:
        content = json.loads(path.read_text())
        return f"process {content['pid']} on {content['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process that has just begun"
