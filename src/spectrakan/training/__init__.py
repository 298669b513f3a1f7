"""Training that survives: settings, losses, a plain loop with listeners, and whole runs."""

from spectrakan.training.events import EpochEnded, Event, Recovered, StepTaken
from spectrakan.training.run import Run, resume, train
from spectrakan.training.settings import RunSettings, RuntimeSettings, TrainingSettings, resolve

__all__ = [
    "EpochEnded",
    "Event",
    "Recovered",
    "Run",
    "RunSettings",
    "RuntimeSettings",
    "StepTaken",
    "TrainingSettings",
    "resolve",
    "resume",
    "train",
]
