"""Physics: one equation a file, batched torch in float64."""
