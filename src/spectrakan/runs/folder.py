"""The folder of a run: where its parts lie, and what state it is in."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectrakan.config import read_yaml, to_yaml
from spectrakan.errors import ConfigError, RunError
from spectrakan.storage import write_text_atomically


@dataclass(frozen=True)
class RunFolder:
    """Paths of a run: `config.yaml`, `log.jsonl`, `checkpoints/last`, `checkpoints/best`, `record.json`.

    `record.json` is written last, so a folder that has one is finished.
    """

    path: Path

    @property
    def config(self) -> Path:
        """The resolved settings, which can be fed back to `train`."""
        return self.path / "config.yaml"

    @property
    def log(self) -> Path:
        """One JSON object a line."""
        return self.path / "log.jsonl"

    @property
    def last(self) -> Path:
        """The whole training state, from which a run goes on."""
        return self.path / "checkpoints" / "last"

    @property
    def best(self) -> Path:
        """The model with the smallest validation error so far; `from_pretrained` reads it."""
        return self.path / "checkpoints" / "best"

    @property
    def record(self) -> Path:
        """What came out."""
        return self.path / "record.json"

    @property
    def lock(self) -> Path:
        """Held while a process works here."""
        return self.path / ".lock"

    @property
    def started(self) -> bool:
        """Whether a run was begun here."""
        return self.config.is_file()

    @property
    def finished(self) -> bool:
        """Whether a run was brought to its end here."""
        return self.record.is_file()

    def create(self) -> list[Path]:
        """Make the folder where there is none; the folders that were made, innermost first."""
        missing = [place for place in (self.path, *self.path.parents) if not place.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise RunError(f"cannot make the run folder '{self.path}': {problem.strerror}") from None
        return missing

    def discard_drafts(self) -> None:
        """Remove half-written checkpoints of a killed process; only the holder of the lock may."""
        for draft in self.last.parent.glob(".*.draft"):
            shutil.rmtree(draft, ignore_errors=True)

    def write_config(self, mapping: dict[str, Any]) -> None:
        """Keep the resolved settings."""
        write_text_atomically(self.config, to_yaml(mapping))

    def read_config(self) -> dict[str, Any]:
        """The settings that the run was started with."""
        if not self.started:
            raise ConfigError(f"'{self.path}' is not the folder of a run: it has no config.yaml")
        return read_yaml(self.config)
