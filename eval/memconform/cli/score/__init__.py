"""The verb `score`."""
