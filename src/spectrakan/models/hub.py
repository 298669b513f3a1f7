"""Models in repositories of the Hugging Face Hub: the files of `save_pretrained` and a card, checksums included.

The calls follow the conventions of huggingface_hub's mixin; `HF_ENDPOINT`, `HF_HOME` and `HF_HUB_OFFLINE` hold as in
that package. Only files that the manifest lists are fetched, each is compared with its SHA-256, and none is a pickle.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectrakan.config import to_yaml
from spectrakan.errors import ConfigError, DataFormatError, RunError, require_package
from spectrakan.storage import MANIFEST

if TYPE_CHECKING:
    from spectrakan.models.operator import Operator

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""`organisation/name`."""
CARD = "README.md"


def is_repository(name: Path | str) -> bool:
    """Whether a name is that of a repository and not that of a folder that is here."""
    return bool(REPOSITORY.fullmatch(str(name))) and not Path(name).exists()


@contextmanager
def fetched(name: str, **options: Any) -> Iterator[Path]:
    """A folder, for as long as the block lasts, with the files of a saved model in a repository.

    `options` as of `huggingface_hub.hf_hub_download`.
    """
    hub = _hub()
    with tempfile.TemporaryDirectory() as beside:
        folder = Path(beside) / name.replace("/", "--")
        folder.mkdir()
        for file in (MANIFEST, "model.json", "weights.safetensors"):
            try:
                found = hub.hf_hub_download(name, file, library_name="spectrakan", **options)
            except (hub.errors.HfHubHTTPError, hub.errors.LocalEntryNotFoundError, OSError) as problem:
                revision = f" at '{options['revision']}'" if options.get("revision") else ""
                raise DataFormatError(f"cannot fetch {file} of '{name}'{revision}: {_first_line(problem)}") from None
            shutil.copyfile(found, folder / file)
        yield folder


def push(
    model: Operator,
    name: str,
    record: Mapping[str, Any] | None = None,
    *,
    commit_message: str = "Add a model of spectrakan",
    private: bool | None = None,
    token: str | None = None,
    branch: str | None = None,
    create_pr: bool = False,
) -> str:
    """Put a model and its card into a repository, which is made if need be, in one commit; gives its address."""
    hub = _hub()
    if not REPOSITORY.fullmatch(name):
        raise ConfigError(f"a repository is named 'organisation/name', got '{name}'")
    api = hub.HfApi(token=token, library_name="spectrakan")
    with tempfile.TemporaryDirectory() as beside:
        model.save_pretrained(folder := Path(beside) / "model")
        (folder / CARD).write_text(model_card(model, record).replace("ORGANISATION/NAME", name), encoding="utf-8")
        try:
            api.create_repo(name, private=private, exist_ok=True)
            if branch is not None:
                api.create_branch(name, branch=branch, exist_ok=True)
            done = api.upload_folder(
                repo_id=name,
                folder_path=folder,
                commit_message=commit_message,
                revision=branch,
                create_pr=create_pr,
            )
        except (hub.errors.HfHubHTTPError, OSError) as problem:
            raise RunError(f"cannot push to '{name}': {_first_line(problem)}") from None
    return str(done.commit_url)


def model_card(model: Operator, record: Mapping[str, Any] | None = None) -> str:
    """The README of a repository: what the model maps to what, its scores, and how to load it.

    Scores and training come from the record of the run that made it; without one the card says that there are none.
    """
    signature = model.signature
    sides = ((signature.in_fields, signature.in_channels), (signature.out_fields, signature.out_channels))
    given, predicted = (", ".join(names) or f"{count} fields" for names, count in sides)
    head: dict[str, Any] = {
        "library_name": "spectrakan",
        "tags": ["neural-operator", "pde", model.name],
        "pipeline_tag": "other",
    }
    trained = "No record of its training was given.\n"
    if record is not None:
        scores = {name: float(value) for name, value in record["metrics"].items() if isinstance(value, int | float)}
        result = {
            "task": {"type": "operator-learning"},
            "dataset": {"name": record["task"], "type": record["task"]},
            "metrics": [{"type": name, "value": value} for name, value in scores.items()],
        }
        head["model-index"] = [{"name": model.name, "results": [result]}]
        rows = "".join(f"| {name} | {value:.6g} |\n" for name, value in scores.items())
        trained = (
            f"Trained on {record['num_samples']} samples of `{record['task']}` at "
            f"{'x'.join(map(str, record['resolution']))} cells (seed {record['seed']}, {record['parameters']} "
            f"parameters, {record['train_seconds']:.0f} s). Scores on its test samples, {record['horizon']} frames "
            f"ahead:\n\n| metric | value |\n|---|---:|\n{rows}"
        )
    return f"""---
{to_yaml(head).strip()}
---
# {model.name}

An operator from {signature.history} frames of {given} to {predicted}, {signature.space_dims}D, \
boundary {", ".join(signature.boundary) or "unknown"}, physical units.

```python
import spectrakan as sk
model = sk.from_pretrained("ORGANISATION/NAME")
y = model(x)    # (batch, history, *space, fields) -> (batch, *space, fields)
```

{trained}"""


def _hub() -> Any:
    require_package("huggingface_hub", "hub", "a repository, unlike a folder on disk,")
    return import_module("huggingface_hub")


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)
