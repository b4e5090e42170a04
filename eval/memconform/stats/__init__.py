"""Statistics as pure functions."""
