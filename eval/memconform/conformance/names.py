"""Where the cases are, and what the command line calls them by."""

from pathlib import Path

CASES = Path(__file__).with_name("cases")

ROBUSTNESS = "robustness"
"""What is asked of every daemon, beside the names of profiles."""
