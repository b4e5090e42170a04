"""Results in a browser, and runs as they happen."""
