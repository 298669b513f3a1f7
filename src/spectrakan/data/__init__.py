"""From a file or a solver to batches: formats, generation, checks, splits, windows, units and loaders."""

from spectrakan.data.files import load_dataset, write_dataset
from spectrakan.data.formats.mapping import DataMapping

__all__ = ["DataMapping", "load_dataset", "write_dataset"]
