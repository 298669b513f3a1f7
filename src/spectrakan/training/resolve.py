"""The settings of a run: a preset, changed by a file, by data at hand and by the command line, in that order."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectrakan.config import apply_overrides, as_mapping, build_settings, read_yaml
from spectrakan.data.prepare import NO_TEST, DataSettings, Part, Prepared, find
from spectrakan.data.problems import Problem, all_problems, find_problem
from spectrakan.data.split import Split
from spectrakan.errors import ConfigError, nearest
from spectrakan.fields import Trajectories
from spectrakan.models.catalog import complete_settings
from spectrakan.runs.folder import from_folder
from spectrakan.training.presets import preset
from spectrakan.training.settings import RunSettings


@dataclass(frozen=True)
class Resolved:
    """A run that is fully specified: its settings, its problem, and trajectories that are in memory already."""

    config: RunSettings
    problem: Problem
    data: Trajectories | None = None
    test_data: Trajectories | None = None


def resolve(
    source: str | Path | Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    *,
    data: Trajectories | None = None,
    test_data: Trajectories | None = None,
) -> Resolved:
    """The settings of a run from a problem's name, a YAML file, a mapping or data, changed by `key=value` texts.

    What is not given comes from the preset of problem, model and budget. Without a problem's name the problem is
    what the data pose. Feeding `as_mapping` of the result back gives it again.

    >>> found = resolve("darcy2d", ["training.epochs=3", "model.width=16"]).config
    >>> found.training.epochs, found.model["name"], found.model["width"], found.model["num_layers"]
    (3, 'spectrakan', 16, 4)
    """
    given = apply_overrides(_mapping(source), overrides)
    for key in ("model", "training", "runtime"):
        _group(given, key)
    given["data"] = _data_group(given)
    config = build_settings(DataSettings, given["data"], where="data")
    problem, found = _problem(given, config, data)
    model = _group(given, "model")
    name, variant = str(model.get("name", "spectrakan")), str(model.get("variant", "default"))
    # What the number of epochs of a budget follows from.
    windows = None if found is None else len(planned(problem, config, found).windows("train"))
    base = preset(problem, name, str(given.get("budget", "short")), variant=variant, windows=windows)
    plan = as_mapping(base)
    # A number of samples is the number of all, test samples included; a resolution is that of the solver too.
    plan["data"] |= {"test_samples": 0} if "num_samples" in given["data"] else {}
    plan["data"] |= {"solved_at": None} if "resolution" in given["data"] else {}
    merged = _merge(plan, {**given, "task": problem.name})
    own = {key: value for key, value in {**base.model, **model}.items() if key not in ("name", "variant")}
    merged["model"] = {"name": name, "variant": variant, **complete_settings(name, variant, own)}
    settled = build_settings(RunSettings, merged)
    if settled.training.lipschitz.active and settled.model.get("token") != "kan":
        raise ConfigError(
            "training.lipschitz controls a KAN token (model.name=spectrakan, model.token=kan), "
            f"got model.name={name} with token {settled.model.get('token', 'none')}; "
            "leave it out or choose such a model"
        )
    return Resolved(settled, problem, found if data is not None else None, test_data)


def _problem(
    given: Mapping[str, Any], config: DataSettings, data: Trajectories | None
) -> tuple[Problem, Trajectories | None]:
    """The problem by name, else the one that the data pose; with the data where they decide the preset."""
    name = given.get("task")
    if name is not None and not isinstance(name, str):
        raise ConfigError(f"key 'task' must be the name of a problem, got {name!r}")
    known = find_problem(name) if name else None
    if data is None and config.path is None:
        if known is None and name:
            raise ConfigError(
                f"unknown problem '{name}'{nearest(name, all_problems())}; give data.path (--data FILE) to learn one "
                "of your own"
            )
        if known is None:
            raise ConfigError("name a problem, or give data (--data FILE); `spectrakan tasks` lists the problems")
        return known, None
    found = find(known, config) if data is None else data
    if known is None and not name:
        known = find_problem(found.name)
    if known is not None:
        # A known problem's name stands for its fields: other data are another problem.
        names, expected = ({spec.name for spec in specs} for specs in (found.fields, known.fields))
        if not names <= expected or len(found.grid.shape) != known.space_dims or found.steady != known.steady:
            raise ConfigError(
                f"'{known.name}' maps {known.mapping} on {known.space_dims} axes, the data are {found.summary}; "
                "leave the problem's name out to learn the data's own problem"
            )
        return known, found
    # The data's own name, or the file's, as one word that can be part of a folder's name.
    text = found.name or Path(str(config.path or "own_problem")).stem
    name = name or re.sub(r"[^\w.+-]+", "_", text).strip("_") or "own_problem"
    return Problem.from_trajectories(found, name=name, history=config.history), found


def planned(problem: Problem, config: DataSettings, data: Trajectories) -> Prepared:
    """The training part as it will be cut, no field of it read; copies among the samples may shift it a little."""
    apart = config.test_path is not None or config.test_samples > 0
    split = config.split or (NO_TEST if apart else problem.split)
    in_time = split.by == "time" and not data.steady
    share = 1.0 if in_time else split.train
    samples = tuple(range(max(1, round(data.num_samples * share))))
    part = data.between(0, int(len(data.times) * split.train)) if in_time else data
    history = 1 if data.steady else config.history or problem.history
    parts = {"train": Part(part, samples)}
    return Prepared(problem, config, data, Split(train=samples), history, problem.horizon, parts)


def _mapping(source: str | Path | Mapping[str, Any] | None) -> dict[str, Any]:
    if source is None or isinstance(source, Mapping):
        return dict(source or {})
    path = Path(source)
    return from_folder(read_yaml(path), path.parent) if path.suffix in (".yaml", ".yml") else {"task": str(source)}


def _data_group(given: Mapping[str, Any]) -> dict[str, Any]:
    """The data settings with absolute paths and the content of a mapping file, so that a run finds both again."""
    group = _group(given, "data")
    for key in ("path", "test_path"):
        if isinstance(group.get(key), str):
            group[key] = str(Path(group[key]).absolute())
    if isinstance(group.get("mapping"), str):
        group["mapping"] = read_yaml(Path(group["mapping"]))
    return group


def _group(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    group = mapping.get(key, {})
    if not isinstance(group, Mapping):
        raise ConfigError(f"'{key}' must be a group of settings, got {group!r}")
    return dict(group)


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings; those of `over` win."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping) and key not in ("mapping", "params"):
            value = _merge(below, value)
        result[key] = value
    return result
