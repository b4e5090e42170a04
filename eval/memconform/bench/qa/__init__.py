"""Stored answers of a benchmark, scored as its authors score them."""
