"""The verb `diff`."""
