"""From a file or a solver to batches: formats, generation, checks, splits, windows, units and loaders."""
