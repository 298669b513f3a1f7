"""Training: settings and presets, losses, a plain loop with listeners, and whole runs."""

from spectrakan.training.loop import EpochEnded, Event, Listener, Recovered, StepTaken
from spectrakan.training.presets import preset
from spectrakan.training.resolve import Resolved, resolve
from spectrakan.training.run import Run, resume, train
from spectrakan.training.settings import RunSettings, RuntimeSettings, TrainingSettings, explained
