"""spectrakan learns solution operators of PDEs."""

from spectrakan import errors, metrics, nn
from spectrakan.data.generate import generate, solve
from spectrakan.data.load import load_dataset
from spectrakan.evaluation import evaluate
from spectrakan.fields import FieldSpec, Grid, OperatorSignature, Trajectories, Window
from spectrakan.models import build_model, from_pretrained
from spectrakan.rollout import rollout
from spectrakan.theory import certify
from spectrakan.training import resume, train

__version__ = "0.1.0"

__all__ = [
    "FieldSpec",
    "Grid",
    "OperatorSignature",
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
    "resume",
    "rollout",
    "solve",
    "train",
]
