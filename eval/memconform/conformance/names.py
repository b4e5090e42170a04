"""Names that the command line uses for cases, importable without reading them."""

from pathlib import Path

CASES = Path(__file__).with_name("cases")

ROBUSTNESS = "robustness"
"""Selects the cases that apply to every daemon; used like the name of a profile."""
