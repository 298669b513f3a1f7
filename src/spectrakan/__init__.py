"""spectrakan learns solution operators of PDEs.

Public names are imported when they are first used, so that `import spectrakan` takes milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectrakan import errors, metrics, nn
    from spectrakan.data.files import load_dataset
    from spectrakan.data.generate import generate, solve
    from spectrakan.data.problems import Problem, register_problem
    from spectrakan.evaluation import evaluate
    from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories, Window
    from spectrakan.models import build_model, from_pretrained, register_model, rollout
    from spectrakan.pde.equation import Equation
    from spectrakan.theory import certify
    from spectrakan.training import resume, train

__version__ = "0.2.0"

_NAMES = {
    "data.generate": ("generate", "solve"),
    "data.files": ("load_dataset",),
    "data.problems": ("Problem", "register_problem"),
    "evaluation": ("evaluate",),
    "fields": ("FieldSpec", "Grid", "OperatorSignature", "Trajectories", "Window"),
    "models": ("build_model", "from_pretrained", "register_model", "rollout"),
    "pde.equation": ("Equation",),
    "theory": ("certify",),
    "training": ("resume", "train"),
}
"""The public names that each module defines."""
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_PACKAGES = ("errors", "metrics", "nn")

__all__ = ["__version__", *_PACKAGES, *_MODULE_OF]


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
