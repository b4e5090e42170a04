"""The verb `init`."""
