"""The verb `judge`."""
