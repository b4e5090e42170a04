"""The verb `info`."""
