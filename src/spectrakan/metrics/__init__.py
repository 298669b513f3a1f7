"""How far a prediction is from the truth."""
