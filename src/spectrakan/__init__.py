"""spectrakan learns solution operators of PDEs.

Public names are imported when they are first used, so that `import spectrakan` takes milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectrakan import errors, metrics, nn
    from spectrakan.data.generate import generate, solve
    from spectrakan.data.load import load_dataset
    from spectrakan.data.problems import Problem, register_problem
    from spectrakan.evaluation import evaluate
    from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories, Window
    from spectrakan.models import build_model, from_pretrained, register_model, rollout
    from spectrakan.pde.equation import Equation
    from spectrakan.theory import certify
    from spectrakan.training import resume, train

__version__ = "0.2.0"

_MODULE_OF = {
    "Equation": "pde.equation",
    "FieldSpec": "fields",
    "Grid": "fields",
    "OperatorSignature": "fields",
    "Problem": "data.problems",
    "Trajectories": "fields",
    "Window": "fields",
    "build_model": "models",
    "certify": "theory",
    "evaluate": "evaluation",
    "from_pretrained": "models",
    "generate": "data.generate",
    "load_dataset": "data.load",
    "register_model": "models",
    "register_problem": "data.problems",
    "resume": "training",
    "rollout": "models",
    "solve": "data.generate",
    "train": "training",
}
"""Where each public name is defined."""
_PACKAGES = ("errors", "metrics", "nn")

__all__ = [
    "Equation",
    "FieldSpec",
    "Grid",
    "OperatorSignature",
    "Problem",
    "Trajectories",
    "Window",
    "__version__",
    "build_model",
    "certify",
    "errors",
    "evaluate",
    "from_pretrained",
    "generate",
    "load_dataset",
    "metrics",
    "nn",
    "register_model",
    "register_problem",
    "resume",
    "rollout",
    "solve",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
