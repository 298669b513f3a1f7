"""What can be said of a trained model with certainty: bounds, attempts to break them, and their record."""
