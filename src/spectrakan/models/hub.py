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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectrakan.config import to_yaml
from spectrakan.errors import ConfigError, DataFormatError, RunError
from spectrakan.storage import MANIFEST, read_json

if TYPE_CHECKING:
    from spectrakan.models.operator import Operator

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""`organisation/name`."""
CARD = "README.md"


@dataclass(frozen=True)
class HubOptions:
    """How a repository is read; as the arguments of `huggingface_hub.hf_hub_download`."""

    revision: str | None = None
    """Branch, tag or commit; None: the main branch."""
    cache_dir: Path | str | None = None
    local_files_only: bool = False
    """Whether only files that were fetched before are read."""
    force_download: bool = False
    token: str | None = None


def is_repository(name: Path | str) -> bool:
    """Whether a name is that of a repository and not that of a folder that is here."""
    return bool(REPOSITORY.fullmatch(str(name))) and not Path(name).exists()


@contextmanager
def fetched(name: str, options: HubOptions) -> Iterator[Path]:
    """A folder, for as long as the block lasts, with the manifest of a repository and the files that it lists."""
    hub = require_hub()
    with tempfile.TemporaryDirectory() as beside:
        folder = Path(beside) / name.replace("/", "--")
        folder.mkdir()
        _fetch(hub, name, MANIFEST, folder, options)
        manifest = read_json(folder / MANIFEST)
        listed = manifest.get("files") if isinstance(manifest, dict) else None
        if not isinstance(listed, dict) or not all(re.fullmatch(r"\w+\.(json|safetensors)", file) for file in listed):
            raise DataFormatError(f"the {MANIFEST} of '{name}' lists no files of a saved model")
        for file in listed:
            _fetch(hub, name, file, folder, options)
        yield folder


def push(
    name: str,
    files: Mapping[str, bytes],
    commit_message: str,
    *,
    private: bool | None,
    token: str | None,
    branch: str | None,
    create_pr: bool,
) -> str:
    """Put files into a repository, which is made if need be, in one commit; gives the address of the commit."""
    hub = require_hub()
    if not REPOSITORY.fullmatch(name):
        raise ConfigError(f"a repository is named 'organisation/name', got '{name}'")
    api = hub.HfApi(token=token, library_name="spectrakan")
    additions = [hub.CommitOperationAdd(path, content) for path, content in sorted(files.items())]
    try:
        api.create_repo(name, private=private, exist_ok=True)
        if branch is not None:
            api.create_branch(name, branch=branch, exist_ok=True)
        done = api.create_commit(
            name,
            additions,
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
    fields = [", ".join(names) or f"{count} fields" for names, count in sides]
    head: dict[str, Any] = {
        "library_name": "spectrakan",
        "tags": ["neural-operator", "pde", model.name],
        "pipeline_tag": "other",
    }
    lines = [f"# {model.name}", "", f"An operator from {signature.history} frames of {fields[0]} to {fields[1]}, "]
    lines[-1] += f"{signature.space_dims}D, boundary {', '.join(signature.boundary) or 'unknown'}, physical units."
    lines += ["", "```python", "import spectrakan as sk", 'model = sk.from_pretrained("ORGANISATION/NAME")']
    lines += ["y = model(x)    # (batch, history, *space, fields) -> (batch, *space, fields)", "```", ""]
    if record is None:
        return "\n".join(["---", to_yaml(head).strip(), "---", *lines, "No record of its training was given.", ""])
    scores = {name: float(value) for name, value in record["metrics"].items() if isinstance(value, int | float)}
    head["model-index"] = [
        {
            "name": model.name,
            "results": [
                {
                    "task": {"type": "operator-learning"},
                    "dataset": {"name": record["task"], "type": record["task"]},
                    "metrics": [{"type": name, "value": value} for name, value in scores.items()],
                }
            ],
        }
    ]
    size = "x".join(str(cells) for cells in record["resolution"])
    trained = (
        f"Trained on {record['num_samples']} samples of `{record['task']}` at {size} cells (seed {record['seed']}, "
        f"{record['parameters']} parameters, {record['train_seconds']:.0f} s). Scores on its test samples, "
        f"{record['horizon']} frames ahead:"
    )
    lines += [
        trained,
        "",
        "| metric | value |",
        "|---|---:|",
        *(f"| {name} | {value:.6g} |" for name, value in scores.items()),
        "",
    ]
    return "\n".join(["---", to_yaml(head).strip(), "---", *lines])


def require_hub() -> Any:
    """The package huggingface_hub, or an error that names the extra."""
    try:
        import huggingface_hub
    except ImportError:
        raise ConfigError(
            "repositories need huggingface_hub: pip install 'spectrakan[hub]'; a folder on disk needs nothing"
        ) from None
    return huggingface_hub


def _fetch(hub: Any, name: str, file: str, folder: Path, options: HubOptions) -> None:
    """Copy one file of a repository into a folder, from the cache where it has it."""
    try:
        found = hub.hf_hub_download(
            name,
            file,
            revision=options.revision,
            cache_dir=options.cache_dir,
            local_files_only=options.local_files_only,
            force_download=options.force_download,
            token=options.token,
            library_name="spectrakan",
        )
    except (hub.errors.HfHubHTTPError, hub.errors.LocalEntryNotFoundError, OSError) as problem:
        revision = f" at '{options.revision}'" if options.revision else ""
        raise DataFormatError(f"cannot fetch {file} of '{name}'{revision}: {_first_line(problem)}") from None
    shutil.copyfile(found, folder / file)


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)
