"""From a file or a solver to batches: formats, generation, checks, splits, windows, units and loaders."""

from spectrakan.data.formats.mapping import DataMapping
from spectrakan.data.load import load_dataset
from spectrakan.data.write import write_dataset

__all__ = ["DataMapping", "load_dataset", "write_dataset"]
