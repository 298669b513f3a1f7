"""Whole operators, one file each."""
