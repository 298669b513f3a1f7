"""File formats: how bytes become arrays, and what the arrays mean."""
