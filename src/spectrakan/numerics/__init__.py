"""Formulas: no state, no files, no weights."""
