"""Brains: opening, changing, reconciling the index with the files."""
